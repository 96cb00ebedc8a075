"""Intervals and quantiles of fitted models, as users ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidOptionError, ModelFileError, TabNSMRegressor
from tabnsm.columns import EncodedTable
from tabnsm.intervals import calibrate, seconds_after_training
from tabnsm.intervals.difficulty import N_TREES, Difficulty
from tabnsm.intervals.fitting import (
    LIMIT_SHARE,
    MAX_SHARE,
    MIN_LIMIT_ROWS,
    MIN_ROWS,
    SECONDS_PER_VALUE,
)
from tabnsm.training.budget import TimeBudget
from tabnsm.training.prepare import FitRows

FIXTURES = Path(__file__).parents[1] / "fixtures"
OPTIONS: dict[str, Any] = {"preset": "fast", "max_epochs": 3, "random_state": 0}


def make_rows(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows whose noise depends on a number and on a category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n_rows), "b": rng.uniform(size=n_rows)})
    X["c"] = rng.choice(["calm", "wild"], n_rows)
    noise = rng.normal(size=n_rows) * np.where(X["c"] == "wild", 2.0, 0.3) * (0.5 + X["b"])
    return X, (2 * X["a"] + noise).to_numpy()


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    return make_rows(400)


@pytest.fixture(scope="module")
def model(rows: tuple[pd.DataFrame, np.ndarray]) -> TabNSMRegressor:
    return TabNSMRegressor(**OPTIONS).fit(*rows)


def test_shapes_and_meaning(model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X = rows[0][:30]
    points, intervals = model.predict_interval(X)
    assert intervals.shape == (30, 2)
    np.testing.assert_array_equal(points, model.predict(X))
    np.testing.assert_array_equal(points, model.predict(X, output_type="mean"))
    ends = model.predict(X, output_type="quantiles", quantiles=[0.95, 0.05])
    np.testing.assert_array_equal(ends, intervals[:, ::-1])
    assert model.predict(X, output_type="quantiles").shape == (30, 9)
    median = model.predict(X, output_type="median")
    assert median.shape == (30,)
    assert ((intervals[:, 0] <= median) & (median <= intervals[:, 1])).all()
    both = model.predict_interval(X, [0.5, 0.9])[1]
    assert both.shape == (30, 2, 2)
    np.testing.assert_array_equal(both[:, :, 1], intervals)
    assert (both[:, 0, 1] <= both[:, 0, 0]).all()
    assert model.predict_interval(X[:0])[1].shape == (0, 2)


def test_a_row_does_not_depend_on_others(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    X = rows[0]
    alone = model.predict_interval(X[17:18])[1]
    np.testing.assert_array_equal(alone[0], model.predict_interval(X)[1][17])


@pytest.mark.slow
def test_width_follows_difficulty_and_coverage_holds() -> None:
    X, y = make_rows(3000)
    options = OPTIONS | {"max_epochs": 12, "validation_fraction": 0.3}
    model = TabNSMRegressor(**options).fit(X[:1500], y[:1500])
    low, high = model.predict_interval(X[1500:], 0.8)[1].T
    wild = (X["c"][1500:] == "wild").to_numpy()
    assert (high - low)[wild].mean() > 2 * (high - low)[~wild].mean()
    inside = (low <= y[1500:]) & (y[1500:] <= high)
    assert inside.mean() == pytest.approx(0.8, abs=0.05)  # 450 calibration, 1,500 test rows
    for part in (wild, ~wild):
        assert inside[part].mean() == pytest.approx(0.8, abs=0.12)


def test_save_and_load_keep_the_bits(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    for mine, other in zip(
        model.predict_interval(rows[0]), loaded.predict_interval(rows[0]), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


def test_a_time_limit_that_is_near_leaves_out_rows_and_trees(
    model: TabNSMRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = FitRows.collect(*make_rows(1000)).prepare(model.options_)
    learned: list[int] = []
    fit = Difficulty.fit

    def counted(table: EncodedTable, *others: Any) -> Difficulty:
        learned.append(table.n_rows)
        return fit(table, *others)

    monkeypatch.setattr(Difficulty, "fit", counted)
    trees = []
    for limit in (None, 1e6, 1e-6):
        found = calibrate(
            prepared, model.model_, None, torch.device("cpu"), budget=TimeBudget(limit)
        )
        assert found.targets[0] is not None
        assert len(found.targets[0].scores) == 100
        trees.append(found.targets[0].difficulty.forest.n_trees)
    assert learned == [900, 900, MIN_ROWS]
    assert trees == [N_TREES, N_TREES, 4]


def test_what_is_set_apart_for_calibration(model: TabNSMRegressor) -> None:
    prepared = FitRows.collect(*make_rows(1000)).prepare(model.options_)
    values = 1000 * prepared.data.train.n_features * len(model.histories_)
    for limit in (None, 60.0):
        found = seconds_after_training(prepared, TimeBudget(limit))
        assert found == pytest.approx(SECONDS_PER_VALUE * values)
    assert 0 < seconds_after_training(prepared, TimeBudget(1e-3)) <= MAX_SHARE * 1e-3


def test_earlier_files_have_none() -> None:
    earlier = TabNSMRegressor.load(FIXTURES / "model-format-5.safetensors")
    assert earlier.calibration_ is None
    with pytest.raises(ModelFileError, match="earlier version"):
        earlier.predict_interval(np.zeros((1, earlier.n_features_in_)))


def test_few_rows_are_refused_before_prediction() -> None:
    X, y = make_rows(60)
    model = TabNSMRegressor(**OPTIONS).fit(X, y)  # six calibration rows
    with pytest.raises(InvalidOptionError, match="With 6 calibration rows"):
        model.predict_interval("nothing that could be predicted", 0.9)
    assert model.predict_interval(X, 0.7)[1].shape == (60, 2)


@pytest.mark.slow
def test_several_targets_with_gaps(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    Y = pd.DataFrame({"first": y, "second": -10 * y})
    Y.loc[::3, "second"] = np.nan
    model = TabNSMRegressor(**OPTIONS).fit(X, Y)
    points, intervals = model.predict_interval(X[:20], 0.5)
    assert points.shape == (20, 2)
    assert intervals.shape == (20, 2, 2)
    assert model.predict_interval(X[:20], [0.5, 0.6])[1].shape == (20, 2, 2, 2)
    assert model.predict(X[:20], output_type="median").shape == (20, 2)
    found = model.predict(X[:20], output_type="quantiles", quantiles=[0.25, 0.75])
    assert found.shape == (20, 2, 2)
    np.testing.assert_array_equal(found, intervals)
    width = (intervals[:, :, 1] - intervals[:, :, 0]).mean(axis=0)
    assert width[1] > 4 * width[0]
    assert model.calibration_ is not None
    first, second = model.calibration_.targets
    assert first is not None
    assert second is not None
    assert len(second.scores) < len(first.scores) == 40


@pytest.mark.slow
def test_best_preset_calibrates_the_blend(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    options = OPTIONS | {"preset": "best", "n_ensemble": 1, "d_token": 8}
    model = TabNSMRegressor(**options).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    points, intervals = model.predict_interval(X[300:], 0.8)
    np.testing.assert_array_equal(points, model.predict(X[300:]))
    # The rows themselves calibrate: ranks are exact on them, but for the tails' rounding.
    inside = (intervals[:, 0] <= y[300:]) & (y[300:] <= intervals[:, 1])
    assert 0.8 <= inside.mean() <= 0.84


@pytest.mark.slow
def test_transform_and_linear_fit() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    heavy = np.exp(3 * X[:, 0] + rng.normal(size=400) / 4)
    linear = X @ [5.0, 3.0, 1.0] + rng.normal(size=400) / 20
    for y, has in ((heavy, "is_transformed"), (linear, "has_linear_fit")):
        model = TabNSMRegressor(**OPTIONS).fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
        assert getattr(model.target_, has)
        low, high = model.predict_interval(X[300:], 0.8)[1].T
        inside = (low <= y[300:]) & (y[300:] <= high)
        assert 0.8 <= inside.mean() <= 0.84


def test_weights_and_groups_move_the_quantiles(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    options = OPTIONS | {"max_epochs": 1, "validation_fraction": 0.5}
    weight = np.where(X["c"] == "wild", 3.0, 1.0)
    weighted = TabNSMRegressor(**options).fit(X, y, sample_weight=weight)
    assert weighted.calibration_ is not None
    (found,) = weighted.calibration_.targets
    assert found is not None
    assert found.weight is not None
    assert set(found.weight) == {1.0, 3.0}
    groups = np.repeat(np.arange(40), 10)
    groups[:100] = 0  # one large group
    grouped = TabNSMRegressor(**options).fit(X, y, validation_groups=groups)
    assert grouped.calibration_ is not None
    (found,) = grouped.calibration_.targets
    assert found is not None
    assert found.weight is not None
    n_groups = found.weight.sum()
    assert n_groups == pytest.approx(round(n_groups))
    assert n_groups < len(found.weight)


def test_limits_are_values_of_many_rows(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    capped = np.clip(y, 0, None)
    assert (capped == 0).sum() > max(MIN_LIMIT_ROWS, LIMIT_SHARE * len(y))
    model = TabNSMRegressor(**OPTIONS | {"max_epochs": 1}).fit(X, capped)
    assert model.calibration_ is not None
    (found,) = model.calibration_.targets
    assert found is not None
    assert found.limits == (0.0, np.inf)
    points, intervals = model.predict_interval(X)
    assert (intervals[:, 0] >= np.minimum(points, 0)).all()


def test_scores_of_at_most_so_many_held_out_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of millions of rows needs no copy of its held-out rows, and no score of each."""
    X, y = make_rows(600)
    y = np.maximum(y, 0.0)  # half of the rows have the lowest target
    options = OPTIONS | {"validation_fraction": 0.5}
    whole = TabNSMRegressor(**options).fit(X, y)
    monkeypatch.setattr("tabnsm.intervals.fitting.MAX_HELD_OUT", 200)
    part = TabNSMRegressor(**options).fit(X, y)
    weighted = TabNSMRegressor(**options).fit(X, y, sample_weight=np.ones(600))
    (of_all,), (of_some,) = whole.calibration_.targets, part.calibration_.targets
    assert (len(of_all.scores), len(of_some.scores)) == (300, 200)
    assert set(of_some.scores) <= set(of_all.scores)
    assert of_some.limits == of_all.limits == (0.0, np.inf)
    assert len(weighted.calibration_.targets[0].weight) == 200
