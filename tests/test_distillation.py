from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor
from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures, join_tables
from tabnsm.distillation import lesson, mixed_rows

Rows = tuple[pd.DataFrame, np.ndarray]


def made(n_rows: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    X["kind"] = rng.choice(["x", "y"], n_rows)
    X.loc[rng.random(n_rows) < 0.1, "c"] = np.nan
    y = X["a"] * X["b"] + (X["kind"] == "x") + 0.1 * rng.normal(size=n_rows)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def rows() -> Rows:
    return made(150, 0)


@pytest.fixture(scope="module")
def teacher(rows: Rows) -> TabNSMRegressor:
    return TabNSMRegressor(max_epochs=12, n_ensemble=2, random_state=0, n_jobs=1).fit(*rows)


@pytest.fixture(scope="module")
def student(teacher: TabNSMRegressor, rows: Rows) -> TabNSMRegressor:
    return teacher.distill(*rows, max_epochs=5)


def test_mixed_rows_exchange_whole_columns():
    generator = torch.Generator().manual_seed(0)
    dense = torch.arange(50.0)[:, None] + torch.tensor([0.0, 100.0, 200.0])
    text = TextFeatures(torch.randn(50, 4), torch.arange(50))
    mixed = mixed_rows(EncodedTable(dense, (text,)), [0, 0, 1], generator)
    assert mixed.n_rows == 40 * 50
    first, second, other = (mixed.dense - torch.tensor([0.0, 100.0, 200.0])).T
    assert torch.equal(first, second)  # features of one column
    changed = (first != other).float().mean()
    assert 0.2 < changed < 0.6
    assert mixed.texts[0].values is text.values
    assert (mixed.texts[0].index != first.long()).any()


def test_joined_tables_share_texts_or_put_them_one_after_the_other():
    values = torch.arange(3.0)[:, None]
    table = EncodedTable(torch.zeros(2, 1), (TextFeatures(values, torch.tensor([0, 2])),))
    other = EncodedTable(torch.ones(1, 1), (TextFeatures(values + 5, torch.tensor([1])),))
    assert join_tables(table, table).texts[0].values is values
    joined = join_tables(table, other)
    assert joined.gather(torch.arange(3)).tolist() == [[0, 0], [0, 2], [1, 6]]


@pytest.mark.slow
def test_a_student_predicts_as_its_teacher_does(teacher, student, rows):
    X, _ = made(200, 1)
    wanted, found = teacher.predict(X), student.predict(X)
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.35 * wanted.std()
    assert np.corrcoef(found, wanted)[0, 1] > 0.95


@pytest.mark.slow
def test_a_student_is_an_ordinary_small_model(teacher, student, rows, tmp_path: Path):
    assert len(student.histories_) == 1
    assert student.options_.architecture.d_token == 16
    assert student.encoder_ is teacher.encoder_
    student.save(tmp_path / "student.safetensors")
    teacher.save(tmp_path / "teacher.safetensors")
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("student", "teacher")]
    assert 2 * sizes[0] < sizes[1]
    loaded = TabNSMRegressor.load(tmp_path / "student.safetensors")
    assert np.array_equal(loaded.predict(rows[0]), student.predict(rows[0]))
    explanation = loaded.explain(rows[0][:3])
    assert explanation.contributions.shape[0] == 3
    assert "RMSE" in loaded.card()
    error = loaded.predict(rows[0]) - rows[1]
    assert loaded.validation_rmse_ == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.6)


@pytest.mark.slow
def test_a_linear_fit_and_a_blend_are_learned_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    straight = TabNSMRegressor(preset="fast", max_epochs=1, random_state=0)
    y = X @ [1.0, 2.0, 3.0] + 0.01 * X[:, 0] ** 2
    straight.fit(X, y)
    assert straight.target_.has_linear_fit
    encoded = straight.encoder_.transform(_table(X))
    assert np.abs(lesson(straight, encoded)).max() < 0.2 * y.std()  # without the linear part
    student = straight.distill(X, max_epochs=1)
    assert np.corrcoef(student.predict(X), y)[0, 1] > 0.99
    best = TabNSMRegressor(preset="best", max_epochs=1, n_ensemble=1, random_state=0, d_token=8)
    best.fit(X, X[:, 0] * X[:, 1])
    assert best.blend_ is not None
    assert best.distill(X, max_epochs=1).blend_ is None


@pytest.mark.slow
def test_several_targets_are_learned_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = pd.DataFrame({"u": X[:, 0] * X[:, 1], "v": X[:, 2] ** 2})
    model = TabNSMRegressor(preset="fast", max_epochs=2, random_state=0).fit(X, y)
    student = model.distill(X, y[["v", "u"]], max_epochs=1)
    assert student.predict(X).shape == (80, 2)
    assert student.target_names_.tolist() == ["u", "v"]
    assert np.isfinite(student.validation_rmse_)


@pytest.mark.slow
def test_what_cannot_be_distilled_is_refused(teacher, rows):
    X, y = rows
    with pytest.raises(InvalidDataError, match=r"at least 10 rows .*got 5"):
        teacher.distill(X[:5])
    with pytest.raises(InvalidOptionError, match="cannot be given to distill"):
        teacher.distill(X, preset="best")
    with pytest.raises(InvalidDataError, match="one value per row"):
        teacher.distill(X, y[:-1])
    with pytest.raises(TypeError, match="no_such_option"):
        teacher.distill(X, no_such_option=1)


def _table(X: np.ndarray):
    from tabnsm.tables import Table

    return Table.from_native(X)
