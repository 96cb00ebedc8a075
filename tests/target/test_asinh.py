from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tabnsm import TabNSMRegressor
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table
from tabnsm.target import TargetScaler
from tabnsm.target.asinh import AsinhTransform
from tabnsm.training.history import ValidationScores
from tabnsm.training.loop import Trainer

pytestmark = pytest.mark.usefixtures("one_network")


def test_ordinary_targets_have_none():
    rng = np.random.default_rng(0)
    for y in (rng.normal(size=500), rng.exponential(size=5000), rng.integers(0, 2, 300) * 1.0):
        assert AsinhTransform.find(y) is None


def test_a_few_rows_that_carry_the_spread_are_found():
    y = np.random.default_rng(0).normal(10, 2, size=4000)
    y[:4] = 1e4
    asinh = AsinhTransform.find(y)
    assert asinh is not None
    assert asinh.median == pytest.approx(10, abs=0.2)
    assert asinh.unit == pytest.approx(2 * 0.6745, abs=0.1)  # the median distance of a Gaussian
    y[4:12] = -1e4  # twelve of 4,000 rows are no longer a few
    assert AsinhTransform.find(y) is None


@pytest.mark.parametrize("outlier", [1e6, 1e9])
def test_the_unit_is_that_of_the_rows_that_are_not_at_the_median(outlier):
    y = np.zeros(1000)
    y[:300] = np.arange(1, 301)
    y[300] = outlier
    assert AsinhTransform.find(y).unit == pytest.approx(151)
    y += 0.3
    y[400:600] = 0.1 + 0.2  # which rounds to another number
    assert AsinhTransform.find(y).unit == pytest.approx(151)


def test_few_rows_have_none():
    y = np.zeros(99)
    y[0] = 1e9
    assert AsinhTransform.find(y) is None
    assert AsinhTransform.find(np.append(y, 1.0)) is not None


def test_a_row_of_tiny_weight_does_not_transform_the_target():
    y = np.random.default_rng(0).normal(size=1000)
    y[0] = 1e4
    weight = np.ones(1000)
    assert AsinhTransform.find(y, weight) is not None
    weight[0] = 1e-9
    assert AsinhTransform.find(y, weight) is None


def test_targets_beyond_any_scale_are_not_transformed():
    y = 1e-200 * np.random.default_rng(0).normal(size=1000)
    y[0] = 1e110
    assert AsinhTransform.find(y) is None
    asinh = AsinhTransform.find(np.append(np.arange(1000.0), 1e9))
    assert np.isfinite(asinh.transform(np.array([-1e308, 1e308]))).all()


@given(
    arrays(np.float64, st.integers(2, 40), elements=st.floats(-1e300, 1e300)),
    st.floats(1, 1e6),
)
def test_transformed_targets_survive_the_round_trip(y, stretch):
    y = np.tile(y, 50)
    y = np.append(y, y.max() + stretch * max(np.ptp(y), 1e-300))
    scaler = TargetScaler.fit(y, transform=True)
    standard = scaler.transform(y)
    assert np.isfinite(standard).all()
    restored = TargetScaler.from_state(json.loads(json.dumps(scaler.to_state())))
    assert restored == scaler
    back = restored.inverse(standard)
    if scaler.asinh is not None:
        unit = scaler.asinh.unit / scaler.pre_scale
        away = np.abs(y - scaler.asinh.median / scaler.pre_scale)
        np.testing.assert_array_less(np.abs(back - y), 1e-4 * (away + unit) + 1e-300)


def test_predictions_stay_inside_the_targets():
    y = np.random.default_rng(0).normal(size=2000)
    y[0] = 1e5
    scaler = TargetScaler.fit(y, transform=True)
    back = scaler.inverse(np.array([-1e30, 1e30], dtype=np.float32))
    np.testing.assert_allclose(back, [y.min(), y.max()])


@pytest.mark.slow
def test_rows_without_a_tail_are_learned_beside_rows_with_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=600)
    y[0] = 1e5
    options = {"max_epochs": 12, "d_token": 8, "random_state": 0}
    transformed = TabNSMRegressor(**options).fit(X, y)
    assert transformed.target_.is_transformed
    plain = TabNSMRegressor(**options, target_transform="none").fit(X, y)
    assert not plain.target_.is_transformed
    test = rng.normal(size=(400, 3))
    errors = [np.abs(model.predict(test) - test[:, 0]).mean() for model in (transformed, plain)]
    assert errors[0] < 0.3
    assert errors[1] > 3 * errors[0]


@pytest.mark.slow
def test_the_history_is_in_the_units_of_the_target_and_the_best_epoch_is_not(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0].copy()
    y[0] = 1e5
    held_out = rng.normal(size=(50, 2))
    y_val = held_out[:, 0].copy()
    y_val[0] = 5e4
    model = TabNSMRegressor(max_epochs=3, d_token=8, random_state=0)
    model.fit(X, y, X_val=held_out, y_val=y_val)
    rmse = float(np.sqrt(np.mean((model.predict(held_out) - y_val) ** 2)))
    assert model.history_.best.validation_rmse == pytest.approx(rmse, rel=1e-6)
    # The one huge row is not what tells the best epoch: its RMSE falls, the other is least in two.
    reported = iter([(9.0, 2.0), (8.0, 1.0), (7.0, 3.0), (7.0, 3.0)])

    def evaluate(self: Trainer, model: object) -> ValidationScores:
        rmse, score = next(reported)
        return ValidationScores(rmse, 1.0, score)

    monkeypatch.setattr(Trainer, "evaluate", evaluate)
    model.fit(X, y, X_val=held_out, y_val=y_val)
    assert model.history_.best_epoch == 2
    assert [record.validation_rmse for record in model.history_] == [9, 8, 7]


def test_the_watched_score_is_on_the_transformed_scale_and_the_shown_one_is_not() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    y = np.exp(2 * X[:, 0])
    y[5] = 1e6
    model = TabNSMRegressor(max_epochs=2, d_token=8, random_state=0, eval_metric="mae")
    model.fit(X, y, X_val=X[300:], y_val=y[300:])
    assert model.target_.is_transformed
    mae = np.abs(model.predict(X[300:]) - y[300:]).mean()
    assert model.best_score_ == pytest.approx(mae, rel=1e-6)
    best = model.history_.best
    assert best.validation_mae == pytest.approx(mae, rel=1e-6)
    encoded = model.encoder_.transform(Table.from_native(X[300:]))
    standard = predict_rows(model.model_, encoded, torch.device("cpu"))
    error = np.abs(model.target_.transform(y[300:, None], encoded) - standard)
    assert best.score == pytest.approx(error.mean(), rel=1e-6)
    assert best.score != best.validation_mae
