from __future__ import annotations

import numpy as np
import torch

from tabnsm.columns import EncodedTable
from tabnsm.target import TargetRows, linear_residual


def rows(n_rows: int, noise: float, seed: int) -> TargetRows:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 2)).astype(np.float32)
    target = 3.0 * x[:, 0] - 2.0 * x[:, 1] + noise * rng.normal(size=n_rows)
    return TargetRows(EncodedTable(torch.from_numpy(x)), target.astype(np.float64), None)


def test_residuals_are_those_of_the_linear_fit() -> None:
    train, validation = rows(200, 0.05, 0), rows(40, 0.05, 1)
    found = linear_residual(train, validation, [0, 0])
    assert found is not None
    np.testing.assert_array_equal(found.train, train.target - found.fit.predict(train.table))
    known = found.fit.predict(validation.table)
    np.testing.assert_array_equal(found.validation, validation.target - known)
    assert np.abs(found.validation).max() < 0.3


def test_a_fit_that_explains_less_than_it_must_is_not_used() -> None:
    assert linear_residual(rows(200, 0.3, 0), rows(40, 0.3, 1), [0, 0]) is not None  # R2 0.993
    assert linear_residual(rows(200, 0.7, 0), rows(40, 0.7, 1), [0, 0]) is None  # R2 0.96


def test_a_fit_that_overfits_is_not_used() -> None:
    train, validation = rows(200, 0.01, 0), rows(40, 0.1, 1)
    assert linear_residual(train, train, [0, 0]) is not None
    assert linear_residual(train, validation, [0, 0]) is None


def test_few_validation_rows_do_not_decide() -> None:
    train = rows(200, 0.0, 0)
    assert linear_residual(train, rows(20, 0.0, 1), [0, 0]) is not None
    assert linear_residual(train, rows(19, 0.0, 1), [0, 0]) is None
