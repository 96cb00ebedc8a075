"""Scores of predictions on validation rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ValidationScores(NamedTuple):
    """How a model does on the validation rows.

    Parameters
    ----------
    rmse, mae : float
        In the target's units.
    score : float
        What the best epoch is chosen by: the `eval_metric`, on the transformed scale where the
        tails of the target are transformed.
    """

    rmse: float
    mae: float
    score: float


def weighted_rmse(target: np.ndarray, prediction: np.ndarray, weight: np.ndarray | None) -> float:
    """Root of the (weighted) mean squared error, also where squares leave float64.

    Examples
    --------
    >>> weighted_rmse(np.array([0.0, 0.0]), np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    1.0
    >>> weighted_rmse(np.array([0.0]), np.array([3e200]), None)
    3e+200
    >>> weighted_rmse(np.array([1.7e308]), np.array([-1.7e308]), None)
    1.7976931348623157e+308
    """
    error, exponent = near_one(np.ldexp(target, -1) - np.ldexp(prediction, -1))
    if weight is not None:
        weight, _ = near_one(weight)
    with np.errstate(over="ignore"):
        return _largest(np.ldexp(np.sqrt(np.average(error**2, weights=weight)), exponent + 1))


def weighted_mae(target: np.ndarray, prediction: np.ndarray, weight: np.ndarray | None) -> float:
    """(Weighted) mean absolute error, also where differences leave float64.

    Examples
    --------
    >>> weighted_mae(np.array([0.0, 0.0]), np.array([1.0, -3.0]), None)
    2.0
    """
    error, exponent = near_one(np.ldexp(target, -1) - np.ldexp(prediction, -1))
    if weight is not None:
        weight, _ = near_one(weight)
    with np.errstate(over="ignore"):
        return _largest(np.ldexp(np.average(np.abs(error), weights=weight), exponent + 1))


def _largest(value: float) -> float:
    """The value, or the largest float: finite numbers may lie further apart, and do not diverge."""
    return min(float(value), float(np.finfo(np.float64).max))


def near_one(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Values over a power of two, which costs no bit and leaves them below 1; its exponent."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent
