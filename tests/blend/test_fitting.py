"""The best preset, from the table to the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.attribution import column_importances
from tabnsm.blend import fitting
from tabnsm.blend.blend import member_predictions
from tabnsm.blend.neighbors import last_stage
from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidOptionError
from tabnsm.metrics import regression_metrics
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

OPTIONS: dict[str, Any] = {
    "preset": "best",
    "max_epochs": 2,
    "d_token": 8,
    "n_ensemble": 1,
    "random_state": 0,
}


def quick(**options: Any) -> TabNSMRegressor:
    return TabNSMRegressor(**OPTIONS | options)


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=300),
            "b": rng.choice(list("xyzuvw"), 300),
            "same": 1.0,
            "when": pd.date_range("2024-01-01", periods=300),
        }
    )
    X.loc[::7, "a"] = np.nan
    X.loc[::11, "b"] = None
    return X, np.nan_to_num(X["a"]) ** 2 + 2 * X["b"].isin(["x", "y"]).to_numpy()


@pytest.fixture(scope="module")
def model(rows: tuple[pd.DataFrame, np.ndarray]) -> TabNSMRegressor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "MIN_NEIGHBOR_ROWS", 1)
        return quick().fit(*rows)


def test_trees_have_a_share_where_networks_are_worse(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    assert model.blend_ is not None
    weights = model.blend_.weights
    assert sum(weights.values()) == pytest.approx(1)
    assert set(weights) <= {"networks", *fitting.MEMBERS, "nearest rows"}
    plain = quick(preset="default").fit(*rows)
    assert plain.blend_ is None
    assert model.validation_rmse_ < plain.validation_rmse_


def test_a_prediction_is_the_weighted_mean(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    blend = model.blend_
    assert blend is not None
    encoded = model.encoder_.transform(Table.from_native(rows[0]))
    standard = predict_rows(model.model_, encoded, next(model.model_.parameters()).device)
    networks = model.target_.predict(standard, encoded)[:, 0]
    others = member_predictions(blend.members, blend.features, encoded, model.target_, None)
    expected = blend.network_weight * networks + np.array(blend.member_weights) @ others
    if blend.neighbors is not None:
        near = blend.neighbors.predict(last_stage(model.model_, encoded))[:, None]
        expected += blend.neighbor_weight * model.target_.predict(near, encoded)[:, 0]
    np.testing.assert_allclose(model.predict(rows[0]), expected, rtol=1e-9)
    # A row's prediction depends on no other row.
    np.testing.assert_array_equal(model.predict(rows[0][:1]), model.predict(rows[0])[:1])
    assert model.predict(rows[0][:0]).shape == (0,)


def test_the_score_is_that_of_the_blend(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    model = quick(eval_metric="mae").fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    found = regression_metrics(y[200:], model.predict(X[200:]))
    assert model.validation_rmse_ == pytest.approx(found["rmse"], rel=1e-6)
    assert model.best_score_ == pytest.approx(found["mae"], rel=1e-6)


def test_a_saved_blend_predicts_the_same_bits_elsewhere(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.safetensors")
    rows[0].to_pickle(tmp_path / "rows.pkl")
    code = (
        "import sys, pandas as pd, numpy as np\n"
        "from tabnsm import TabNSMRegressor\n"
        "model = TabNSMRegressor.load('m.safetensors')\n"
        "np.save('found.npy', model.predict(pd.read_pickle('rows.pkl')))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model.predict(rows[0]))
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    assert loaded.preset == "best"
    assert loaded.blend_.weights == model.blend_.weights  # type: ignore[union-attr]
    assert loaded.best_score_ == model.best_score_


def test_nearest_rows_need_validation_rows_and_time(
    rows: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    place = fitting.Neighbors.fit

    def counted(*given: Any) -> Any:
        asked.append(1)
        return place(*given)

    monkeypatch.setattr(fitting.Neighbors, "fit", counted)
    quick().fit(*rows)
    assert not asked  # 30 validation rows
    monkeypatch.setattr(fitting, "MIN_NEIGHBOR_ROWS", 30)
    quick(time_limit=1e-3).fit(*rows)
    assert not asked
    quick().fit(*rows)
    assert asked


def test_the_same_seed_is_the_same_bits(
    model: TabNSMRegressor,
    rows: tuple[pd.DataFrame, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fitting, "MIN_NEIGHBOR_ROWS", 1)
    again = quick().fit(*rows)
    np.testing.assert_array_equal(again.predict(rows[0]), model.predict(rows[0]))


def test_the_networks_are_those_of_the_default(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    plain = quick(preset="default").fit(*rows)
    for name, weight in plain.model_.state_dict().items():
        np.testing.assert_array_equal(model.model_.state_dict()[name], weight)


def test_explanations_are_of_the_networks_share(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    found = model.explain(rows[0][:5])
    assert found.network_share == model.blend_.network_weight  # type: ignore[union-attr]
    plain = quick(preset="default").fit(*rows)
    alone = plain.explain(rows[0][:5])
    assert alone.network_share == 1.0
    np.testing.assert_array_equal(found.contributions, alone.contributions)
    np.testing.assert_array_equal(found.predictions, alone.predictions)


def test_importances_are_of_the_whole_blend(
    model: TabNSMRegressor, rows: tuple[pd.DataFrame, np.ndarray]
) -> None:
    X = rows[0][:40]
    encoded = model.encoder_.transform(Table.from_native(X))
    found = column_importances(model.model_, model.encoder_, model.target_, encoded, model._blended)
    drawn = np.random.default_rng(0).choice(40, 40, replace=False)
    here, other = X.iloc[drawn], X.iloc[np.roll(drawn, 1)].reset_index(drop=True)
    expected = []
    for name in X:
        changed = here.reset_index(drop=True)
        changed[name] = other[name]
        expected.append(((model.predict(changed) - model.predict(here)) ** 2).mean())
    np.testing.assert_allclose(found, np.array(expected) / sum(expected), rtol=1e-5)
    alone = column_importances(model.model_, model.encoder_, model.target_, encoded)
    assert np.abs(found - alone).max() > 0.01


def test_several_targets_are_refused(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    with pytest.raises(InvalidOptionError, match='preset="best" needs one target, got 2'):
        quick().fit(X, np.column_stack([y, y]))


def test_weights_of_rows(rows: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = rows
    weight = np.where(y > 1, 1.0, 0.0)  # rows of weight zero are left out
    model = quick().fit(X, y, weight)
    assert model.predict(X).min() > 0.5


@pytest.mark.parametrize("seconds", [1e-3, 2.0])
def test_a_time_limit_leaves_a_model(rows: tuple[pd.DataFrame, np.ndarray], seconds: float) -> None:
    model = quick(time_limit=seconds, max_epochs=1000, patience=1000).fit(*rows)
    assert np.isfinite(model.predict(rows[0])).all()
    assert "time_limit" in model.history_.stop_reason


def test_ctrl_c_while_trees_grow_goes_on_to_the_caller(
    rows: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(fitting.MEMBERS, "boosting", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick().fit(*rows)


def test_ctrl_c_while_networks_train_keeps_the_blend(
    rows: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tabnsm.training.loop import Trainer

    train_epoch = Trainer.train_epoch

    def interrupted(self: Trainer, state: Any) -> None:
        if len(state.history) == 1:
            raise KeyboardInterrupt
        train_epoch(self, state)

    monkeypatch.setattr(Trainer, "train_epoch", interrupted)
    with pytest.warns(UserWarning, match="interrupted in epoch 2"):
        model = quick(max_epochs=9).fit(*rows)
    assert model.blend_ is not None
    assert np.isfinite(model.predict(rows[0])).all()


@pytest.mark.parametrize("n_rows", [4, 20])
def test_tiny_tables(rows: tuple[pd.DataFrame, np.ndarray], n_rows: int) -> None:
    X, y = rows
    model = quick().fit(X[1 : 1 + n_rows], y[1 : 1 + n_rows])
    assert np.isfinite(model.predict(X[1 : 1 + n_rows])).all()


def test_tables_of_text_alone() -> None:
    words = ["red house", "blue boat", "green tree", "old red boat", "new blue tree"]
    rng = np.random.default_rng(0)
    text = [f"{words[k % 5]} {rng.integers(10**6)}" for k in range(80)]
    X, y = pd.DataFrame({"text": text}), np.arange(80) % 5 + rng.normal(size=80)
    model = quick(text_encoder=FakeTextEncoder(), column_kinds={"text": "text"}).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_heavy_tailed_targets_are_learned_on_both_scales(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = X[:, 0] + rng.normal(size=2000) * 0.1
    y[::1000] *= 3000
    model = quick(max_epochs=1).fit(X, y)
    assert model.target_.is_transformed
    blend = model.blend_
    assert blend is not None
    assert blend.raw_target is not None
    assert not blend.raw_target.is_transformed
    model.save(tmp_path / "m.safetensors")
    again = TabNSMRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_residuals_of_a_linear_fit() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
    y = X @ [1.0, 2.0, 3.0] + 0.05 * np.sin(4 * X[:, 0])
    model = quick().fit(X, y)
    assert model.target_.has_linear_fit
    assert model.score(X, y) > 0.99


def test_long_tables_are_learned_in_part(
    rows: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    fit = fitting.TreeFeatures.fit

    def counted(table: EncodedTable, *further: Any) -> Any:
        seen.append(table.n_rows)
        return fit(table, *further)

    monkeypatch.setattr(fitting.TreeFeatures, "fit", counted)
    monkeypatch.setattr(fitting, "MAX_VALUES", 1000)
    model = quick().fit(*rows, np.ones(300))
    assert seen[0] == 1000 // model.encoder_.n_features  # the second is of the intervals
