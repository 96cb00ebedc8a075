"""A model of several targets, from the table to the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.metrics import r2_score

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor, TabNSMWarning, tune
from tabnsm.metrics import regression_metrics, target_metrics, weighted_rmse
from tabnsm.options import resolve_options
from tabnsm.training.network import make_trainer
from tabnsm.training.prepare import FitRows, Validation

pytestmark = pytest.mark.usefixtures("one_network")
OPTIONS = {"d_token": 8, "head_width": 16, "max_epochs": 6, "random_state": 0}


def make_table(n_rows: int = 240, missing: float = 0.3) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("wxyz"))
    Y = pd.DataFrame(
        {
            "small": X["w"] * X["x"],
            "large": 1e6 * (X["y"] * X["w"] + 3),
            "stars": np.round(2 * X["z"]).clip(-2, 2),
        }
    )
    return X, Y.mask(rng.random(Y.shape) < missing)


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.DataFrame]:
    return make_table()


@pytest.fixture(scope="module")
def model(table: tuple[pd.DataFrame, pd.DataFrame]) -> TabNSMRegressor:
    X, Y = table
    keep = Y.notna().any(axis=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tabnsm.training.config.MAX_NETWORKS", 1)
        return TabNSMRegressor(**OPTIONS).fit(X[keep], Y[keep])


def test_predictions_names_and_scores(model, table):
    X, Y = table
    prediction = model.predict(X)
    assert (prediction.shape, prediction.dtype) == ((240, 3), np.float64)
    assert list(model.target_names_) == ["small", "large", "stars"]
    assert model.options_.objective.loss == "auto"
    present = Y.notna().to_numpy()
    each = [r2_score(Y.iloc[present[:, k], k], prediction[present[:, k], k]) for k in range(3)]
    assert model.score(X, Y) == pytest.approx(np.mean(each))
    assert model.score(X, Y[["stars", "small", "large"]]) == pytest.approx(np.mean(each))
    full = Y.fillna(0.5)
    weight = np.linspace(0, 2, 240)
    expected = r2_score(full, prediction, sample_weight=weight)
    assert model.score(X, full.to_numpy(), weight) == pytest.approx(expected)
    assert model.predict(X[:0]).shape == (0, 3)
    with pytest.raises(InvalidDataError, match="y must have as many targets as fit"):
        model.score(X, full.to_numpy()[:, :2])


def test_tables_of_every_library_give_the_same_bits(table):
    X, Y = table[0][:80], table[1][:80].fillna(1.0)
    options = OPTIONS | {"max_epochs": 2}
    expected = TabNSMRegressor(**options).fit(X, Y).predict(X)
    for targets in (
        Y.to_numpy(),
        Y.to_dict("list"),
        pl.from_pandas(Y),
        pa.Table.from_pandas(Y),
        Y.to_numpy().tolist(),
    ):
        np.testing.assert_array_equal(
            TabNSMRegressor(**options).fit(X, targets).predict(X), expected
        )


def test_missing_entries_do_not_matter(table):
    X, Y = table
    rows = FitRows.collect(X[:100], Y[:100].fillna({"stars": 1.0}), random_state=0)
    prepared = rows.prepare(resolve_options({"linear_residual": False, "d_token": 8}))
    for k, scaler in enumerate(prepared.target.scalers):
        column = prepared.data.train_target[:, k]
        present = column[~np.isnan(column)]
        assert scaler.mean / scaler.pre_scale == pytest.approx(present.mean())
    trainer = make_trainer(prepared, torch.device("cpu"))
    for (lower, upper), column in zip(trainer.bounds, trainer.standard.numpy().T, strict=True):
        assert (lower, upper) == (np.nanmin(column), np.nanmax(column))


def test_rows_without_any_target_are_left_out_with_a_count(table):
    X, Y = table[0][:60], table[1][:60].fillna(1.0)
    Y.iloc[5:8] = np.nan
    options = OPTIONS | {"max_epochs": 2}
    with pytest.warns(TabNSMWarning, match="3 of 60 rows of X have no target"):
        some = TabNSMRegressor(**options).fit(X, Y)
    kept = np.r_[0:5, 8:60]
    without = TabNSMRegressor(**options).fit(X.iloc[kept], Y.iloc[kept])
    np.testing.assert_array_equal(some.predict(X), without.predict(X))


def test_validation_counts_every_target_in_its_own_deviations(model, table):
    X, Y = table
    keep = Y.notna().any(axis=1)
    rows = FitRows.collect(X[keep], Y[keep], random_state=0)
    truth = rows.target[rows.held_out]
    prediction = model.predict(X[keep].iloc[rows.held_out])
    scores = []
    for k, scaler in enumerate(model.target_.scalers):
        present = ~np.isnan(truth[:, k])
        rmse = weighted_rmse(truth[present, k], prediction[present, k], None)
        scores.append(rmse * scaler.pre_scale / scaler.scale)
    assert model.validation_rmse_ == pytest.approx(np.mean(scores), rel=1e-5)
    assert model.best_score_ == model.validation_rmse_
    best = model.history_.best
    assert best.score == best.validation_rmse == model.validation_rmse_


def test_a_linear_target_beside_another_counts_in_its_own_deviations():
    X, Y = make_table(400, missing=0.0)
    Y["large"] = 1e6 * (X["w"] + 2 * X["x"]) + 1.0
    Y.iloc[::4, 1] = np.nan
    model = TabNSMRegressor(**OPTIONS).fit(X, Y[["small", "large"]])
    assert [fit is not None for fit in model.target_.linear_fits] == [False, True]
    present = Y["large"].notna().to_numpy()
    assert r2_score(Y["large"][present], model.predict(X)[present, 1]) > 0.999
    assert model.validation_rmse_ < 0.8  # half of it would be the residual's own noise


def test_own_validation_rows_are_matched_by_name(table):
    X, Y = table[0][:100], table[1][:100].fillna(1.0)
    swapped = Validation(X_val=X[80:], y_val=Y.iloc[80:, ::-1])
    rows = FitRows.collect(X[:80], Y[:80], validation=swapped, random_state=0)
    np.testing.assert_array_equal(rows.given[1], Y[80:])
    other = Validation(X_val=X[80:], y_val=Y[80:].rename(columns={"stars": "moons"}))
    with pytest.raises(InvalidDataError, match="y_val must have the targets of fit"):
        FitRows.collect(X[:80], Y[:80], validation=other)
    with pytest.raises(InvalidDataError, match=r"as many targets as fit \(3\), got 1"):
        FitRows.collect(X[:80], Y[:80], validation=Validation(X_val=X[80:], y_val=Y["small"][80:]))


def test_a_target_that_no_training_row_has_is_refused(table):
    X, Y = table[0][:40], table[1][:40].fillna(1.0)
    Y["small"] = [1.0, 2.0, *[np.nan] * 38]
    with pytest.raises(InvalidDataError, match=r"got none of target 'small'.*X_val, y_val"):
        TabNSMRegressor(**OPTIONS).fit(X, Y, sample_weight=np.r_[[0.0] * 2, [1.0] * 38])


def test_a_target_without_validation_entries_is_left_out_of_the_score(table):
    X, Y = table[0][:60], table[1][:60].fillna(1.0)
    Y_val = Y[50:].assign(small=np.nan)
    model = TabNSMRegressor(**OPTIONS | {"max_epochs": 1})
    model.fit(X[:50], Y[:50], X_val=X[50:], y_val=Y_val)
    assert np.isfinite(model.validation_rmse_)


def test_explanations_are_of_one_target(model, table):
    X = table[0][:20]
    for place, name in enumerate(model.target_names_):
        explanation = model.explain(X, target=name)
        np.testing.assert_allclose(explanation.predictions, model.predict(X)[:, place], rtol=1e-5)
        by_number = model.explain(X, target=place)
        np.testing.assert_array_equal(explanation.contributions, by_number.contributions)
    with pytest.raises(InvalidOptionError, match=r"one of the model's 3 target.*'large'.*got None"):
        model.explain(X)
    with pytest.raises(InvalidOptionError, match="got 'price'"):
        model.explain(X, target="price")


def test_a_saved_model_predicts_the_same(model, table, tmp_path: Path):
    X, _ = table
    model.save(tmp_path / "model.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert list(loaded.target_names_) == list(model.target_names_)
    assert loaded.validation_rmse_ == model.validation_rmse_


def test_names_are_forgotten_by_a_fit_without(table):
    X, Y = table[0][:60], table[1][:60].fillna(1.0)
    model = TabNSMRegressor(**OPTIONS | {"max_epochs": 1}).fit(X, Y)
    assert hasattr(model, "target_names_")
    model.fit(X, Y.to_numpy())
    assert not hasattr(model, "target_names_")
    model.fit(X, Y["small"])
    assert model.predict(X).shape == (60,)


def test_tune_scores_all_targets(table):
    X, Y = table[0][:80], table[1][:80].fillna(1.0)
    options = {"max_epochs": 2, "d_token": 8}
    result = tune(X, Y, n_trials=1, options=options)
    model = TabNSMRegressor(**result.best_options, max_epochs=2, random_state=0).fit(X, Y)
    assert model.history_.best.validation_rmse == result.best_score


def test_metrics_of_several_targets():
    rng = np.random.default_rng(0)
    truth, prediction = rng.normal(size=(2, 50, 2))
    truth[::3, 1] = np.nan
    found = target_metrics(truth, prediction, names=["a", "b"])
    present = ~np.isnan(truth[:, 1])
    expected = regression_metrics(truth[present, 1], prediction[present, 1])
    assert {key: found["b"][key] for key in expected} == expected
    assert found["b"]["n_rows"] == present.sum()
    deviation = truth[present, 1].std()
    assert found["b"]["standardized_rmse"] == pytest.approx(expected["rmse"] / deviation)
    truth[:, 0] = np.nan
    assert list(target_metrics(truth, prediction, names=["a", "b"])) == ["b"]
    with pytest.raises(InvalidDataError, match="y must have values"):
        target_metrics(np.full((2, 2), np.nan), np.zeros((2, 2)))
    with pytest.raises(InvalidDataError, match=r"shape \(n_rows, n_targets\)"):
        target_metrics(np.zeros(3), np.zeros(3))
