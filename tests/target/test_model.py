from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from tabnsm.columns import EncodedTable
from tabnsm.target import LinearFit, TargetConfig, TargetModel


@pytest.fixture
def rows() -> tuple[EncodedTable, np.ndarray]:
    """Rows with a linear target, a heavy-tailed one and a plain one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2)).astype(np.float32)
    targets = np.stack([5.0 * x[:, 0] + 1.0, np.exp(2 * x[:, 1]), x[:, 0] * x[:, 1]], axis=1)
    targets[7, 1] = 1e6
    return EncodedTable(torch.from_numpy(x)), targets.astype(np.float64)


def make(table: EncodedTable, targets: np.ndarray) -> TargetModel:
    linear = LinearFit.fit(table, targets[:, 0], None, [0, 0])
    assert linear is not None
    residual = targets.copy()
    residual[:, 0] -= linear.predict(table)
    return TargetModel.fit(residual, None, TargetConfig(), (linear, None, None))


def test_every_target_is_inverted_by_its_scaler(rows: tuple[EncodedTable, np.ndarray]) -> None:
    table, targets = rows
    model = make(table, targets)
    assert (model.n_targets, model.has_linear_fit, model.is_transformed) == (3, True, True)
    assert [scaler.asinh is not None for scaler in model.scalers] == [False, True, False]
    standard = model.transform(targets, table)
    assert (standard.shape, standard.dtype) == ((300, 3), np.float32)
    np.testing.assert_allclose(standard.std(axis=0), 1.0, rtol=1e-3)
    prediction = model.predict(standard, table)
    assert prediction.dtype == np.float64
    np.testing.assert_allclose(prediction, targets, rtol=1e-4, atol=1e-4)


def test_several_targets_are_each_as_alone(rows: tuple[EncodedTable, np.ndarray]) -> None:
    _, targets = rows
    weight = np.linspace(0.1, 2.0, 300)
    together = TargetModel.fit(targets, weight, TargetConfig())
    for k in range(3):
        alone = TargetModel.fit(targets[:, k : k + 1], weight, TargetConfig())
        assert alone.scalers == together.scalers[k : k + 1]
        expected = together.standardize(targets)[:, k : k + 1]
        np.testing.assert_array_equal(alone.standardize(targets[:, k : k + 1]), expected)


def test_options_of_the_target_act(rows: tuple[EncodedTable, np.ndarray]) -> None:
    _, targets = rows
    plain = TargetModel.fit(targets, None, TargetConfig("none", clip_predictions=False))
    assert not plain.is_transformed
    assert [scaler.limits for scaler in plain.scalers] == [None] * 3
    limited = TargetModel.fit(targets, None, TargetConfig("none"))
    far = limited.unstandardize(np.full((1, 3), 1e9))[0]
    np.testing.assert_allclose(far, targets.max(axis=0) + 0.1 * np.ptp(targets, axis=0))


def test_the_state_is_tensors_and_json(rows: tuple[EncodedTable, np.ndarray]) -> None:
    table, targets = rows
    model = make(table, targets)
    tensors, entries = model.to_state()
    assert sorted(tensors) == ["0.code_value", "0.slope"]
    restored = TargetModel.from_state(tensors, json.loads(json.dumps(entries)), [0, 0])
    standard = np.random.default_rng(1).normal(size=(300, 3))
    np.testing.assert_array_equal(restored.predict(standard, table), model.predict(standard, table))
