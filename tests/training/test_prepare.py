from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidOptionError, TabNSMRegressor, TabNSMWarning
from tabnsm.columns import TableEncoder
from tabnsm.nn.ensemble import join_networks
from tabnsm.options import resolve_options
from tabnsm.prediction import predict_rows
from tabnsm.training.budget import TimeBudget
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.network import fingerprint
from tabnsm.training.prepare import FitRows, Validation


@pytest.fixture
def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=240), "b": rng.normal(size=240)})
    return X, (4 * X["a"] - X["b"]).to_numpy()


def test_a_fit_is_prepared_as_the_estimator_does(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    prepared = FitRows.collect(*table, random_state=3).prepare(resolve_options({}))
    model = TabNSMRegressor(max_epochs=1, n_ensemble=1, d_token=8, random_state=3).fit(*table)
    assert prepared.target.scalers == model.target_.scalers
    assert prepared.encoder.feature_names == model.encoder_.feature_names
    assert prepared.data.train_target.shape == (216, 1)
    assert prepared.data.validation_target.shape == (24, 1)
    assert prepared.options.training.batch_size == model.options_.training.batch_size


def test_targets_are_residuals_where_there_is_a_linear_fit(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    rows = FitRows.collect(*table, random_state=0)
    prepared = rows.prepare(resolve_options({}))
    assert prepared.target.has_linear_fit
    assert np.abs(prepared.data.train_target).max() < 0.1
    plain = rows.prepare(resolve_options({"linear_residual": False}))
    assert not plain.target.has_linear_fit
    np.testing.assert_array_equal(plain.data.train_target, rows.target[~rows.held_out])
    standard = prepared.target.standardize(prepared.data.train_target)
    whole = prepared.target.transform(plain.data.train_target, plain.data.train)
    np.testing.assert_array_equal(standard, whole)


def test_no_linear_fit_without_time(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    budget = TimeBudget(60.0)
    budget.charge(60.0)
    prepared = FitRows.collect(*table, random_state=0).prepare(resolve_options({}), budget)
    assert not prepared.target.has_linear_fit


def test_rows_are_encoded_once_per_encoder_options(
    table: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table
    X["copy"] = y
    calls: list[object] = []
    encode = TableEncoder.fit_transform

    def counted(self: TableEncoder, *arguments: object) -> object:
        calls.append(self)
        return encode(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(TableEncoder, "fit_transform", counted)
    rows = FitRows.collect(X, y, random_state=0)
    with pytest.warns(TabNSMWarning, match="copy"):
        first = rows.prepare(resolve_options({}))
    # A warning would be an error now: it is given once.
    same = rows.prepare(resolve_options({"d_token": 8, "loss": "mse"}))
    other = rows.prepare(resolve_options({"n_bins": 4}))
    assert len(calls) == 2
    assert first.encoder is same.encoder
    assert first.encoder is not other.encoder
    assert same.options.architecture.d_token == 8


def test_every_fit_begins_with_the_same_random_numbers(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    prepared = FitRows.collect(*table, random_state=0).prepare(resolve_options({}))
    first, second = (torch.rand(3, generator=prepared.generator()) for _ in range(2))
    assert torch.equal(first, second)


def test_the_fingerprint_is_of_rows_options_and_seed(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    def mark(seed: int = 0, factor: float = 1.0, **options: object) -> str:
        rows = FitRows.collect(table[0], factor * table[1], random_state=seed)
        return fingerprint(rows.prepare(resolve_options(options)))

    assert mark() == mark() == mark(verbose=2, time_limit=50.0)
    assert len({mark(), mark(seed=1), mark(factor=2.0), mark(clip_predictions=False)}) == 4


def test_the_ways_to_validate(table: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = table
    time = np.arange(240)
    latest = FitRows.collect(X, y, validation=Validation(validation_time=time), random_state=0)
    assert np.flatnonzero(latest.held_out).tolist() == list(range(216, 240))
    groups = np.repeat(np.arange(24), 10)
    by_group = FitRows.collect(X, y, validation=Validation(validation_groups=groups))
    assert len(set(groups[by_group.held_out]) & set(groups[~by_group.held_out])) == 0
    own = FitRows.collect(X[:200], y[:200], validation=Validation(X[200:], y[200:]))
    assert not own.held_out.any()
    prepared = own.prepare(resolve_options({"linear_residual": False}))
    np.testing.assert_array_equal(prepared.data.validation_target[:, 0], y[200:])


def test_rows_without_a_target_or_a_weight_are_left_out(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = table
    y = y.copy()
    y[3] = np.nan
    weight = np.ones(240)
    weight[:2] = 0
    with pytest.warns(TabNSMWarning, match="1 of 240 rows of X have no target"):
        rows = FitRows.collect(X, y, weight)
    assert rows.target.shape == (237, 1)
    assert rows.weight is not None
    assert len(rows.weight) == rows.table.n_rows == 237


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_val": [1.0]}, "X_val and y_val must be given together, got only y_val"),
        (
            {"validation_groups": [1], "validation_time": [1]},
            "Only one way to validate can be used, got validation_groups and validation_time",
        ),
        ({"validation_fraction": 1.0}, "validation_fraction must be > 0 and < 1, got 1.0"),
    ],
)
def test_impossible_ways_to_validate(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Validation(**options)  # type: ignore[arg-type]


def test_a_network_beyond_memory_is_refused_before_any_encoding(
    table: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableEncoder, "fit_transform", lambda *args: pytest.fail("encoded"))
    rows = FitRows.collect(*table)
    with pytest.raises(InvalidOptionError, match="fit into memory"):
        rows.prepare(resolve_options({"head_width": 10**12}))


def test_several_targets_are_prepared_trained_and_predicted(
    table: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, linear = table
    product = (X["a"] * X["b"]).to_numpy()
    rows = FitRows.collect(X, linear, random_state=0)
    targets = np.stack([linear, product], axis=1)
    rows = replace(rows, target=targets)
    params = {"max_epochs": 25, "d_token": 8, "n_ensemble": 2, "refresh_every": 2}
    prepared = rows.prepare(resolve_options(params))
    assert [fit is not None for fit in prepared.target.linear_fits] == [True, False]
    training = EnsembleTraining(prepared, torch.device("cpu"))
    training.train(None, resume=False)
    assert any(record.refreshed for record in training.histories[0])
    model = join_networks(training.models)
    assert model.n_targets == 2
    data = prepared.data
    standard = predict_rows(model, data.validation, torch.device("cpu"))
    prediction = prepared.target.predict(standard, data.validation)
    error = np.sqrt(np.mean((prediction - targets[rows.held_out]) ** 2, axis=0))
    assert error[0] < 0.1
    assert error[1] < 0.8 * product.std()
    deviations = targets[~rows.held_out].std(axis=0)
    assert training.evaluate().rmse == pytest.approx((error / deviations).mean(), rel=1e-4)
