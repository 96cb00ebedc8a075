"""How good predictions are, in a handful of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError

Values = NDArray[np.float64]


def regression_metrics(
    y: Any, prediction: Any, sample_weight: Any = None, n_bins: int = 20
) -> dict[str, float]:
    """Compare predictions with the truth.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True values, finite.
    prediction : array-like of shape (n_rows,)
        Predicted values, finite.
    sample_weight : array-like of shape (n_rows,) or None
        Weights of the rows; None weighs all alike.
    n_bins : int, default 20
        Bins of equal width between the least and the greatest true value, for
        `within_one_bin`.

    Returns
    -------
    dict of str to float
        - rmse, mse, mae: root mean squared, mean squared and mean absolute error;
        - r2: 1 - mse / variance of `y`; for constant `y` 1 if all predictions are exact, else 0;
        - spearman: rank correlation, ties at their mean rank; 0 where either side is constant,
          since a constant ranks nothing;
        - within_one_bin: share of rows whose prediction falls in the bin of the true value or
          in one beside it; predictions beyond the range count as in the outermost bin. For
          constant `y`, which has no bins, share of exact predictions.

    Examples
    --------
    >>> metrics = regression_metrics([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    >>> round(metrics["mae"], 3), metrics["spearman"], round(metrics["within_one_bin"], 3)
    (0.333, 1.0, 1.0)
    """
    truth, predicted, weight = _check(y, prediction, sample_weight)
    # A power of two, so that squares of huge or tiny numbers stay in float64, bit for bit.
    exponent = int(np.frexp(max(np.abs(truth).max(), np.abs(predicted).max()))[1]) + 1
    truth, predicted = np.ldexp(truth, -exponent), np.ldexp(predicted, -exponent)
    error = predicted - truth
    mse = float(np.average(error**2, weights=weight))
    variance = float(np.average((truth - np.average(truth, weights=weight)) ** 2, weights=weight))
    is_constant = truth.min() == truth.max() or variance == 0
    r2 = float(mse == 0) if is_constant else 1 - mse / variance
    close = np.abs(_bins(predicted, truth, n_bins) - _bins(truth, truth, n_bins)) <= 1
    if is_constant:
        close = error == 0
    return {
        "rmse": _scaled(np.sqrt(mse), exponent),
        "mse": _scaled(mse, 2 * exponent),
        "mae": _scaled(np.average(np.abs(error), weights=weight), exponent),
        "r2": r2,
        "spearman": _correlation(_ranks(truth, weight), _ranks(predicted, weight), weight),
        "within_one_bin": float(np.average(close, weights=weight)),
    }


def target_metrics(
    y: Any, prediction: Any, sample_weight: Any = None, names: Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """Compare predictions of several targets with the truth, each on the rows that have it.

    Parameters
    ----------
    y : array-like of shape (n_rows, t)
        True values, NaN where missing.
    prediction : array-like of shape (n_rows, t)
        Predicted values, finite.
    sample_weight : array-like of shape (n_rows,) or None
        Weights of the rows; None weighs all alike.
    names : sequence of str or None
        Of the targets; None counts them from 1.

    Returns
    -------
    dict of str to dict of str to float
        By target, what `regression_metrics` returns, `n_rows`, the number of rows that have it,
        and `standardized_rmse`, the RMSE in standard deviations of the true values, which is the
        root of 1 - r2. A target without true values is left out.

    Examples
    --------
    >>> found = target_metrics([[1.0, 10.0], [2.0, None], [3.0, 20.0]], [[1, 10], [2, 9], [4, 20]])
    >>> found["2"]["n_rows"], found["2"]["r2"], round(found["1"]["standardized_rmse"], 3)
    (2, 1.0, 0.707)
    """
    truth, predicted = np.asarray(y, dtype=np.float64), np.asarray(prediction, dtype=np.float64)
    if truth.ndim != 2 or truth.shape != predicted.shape:
        raise InvalidDataError(
            "y and prediction must both have shape (n_rows, n_targets), got shapes "
            f"{truth.shape} and {predicted.shape}."
        )
    weight = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, float)
    found = {}
    for k, name in enumerate(names or [str(k + 1) for k in range(truth.shape[1])]):
        present = ~np.isnan(truth[:, k])
        if not (weight[present] > 0).any():
            continue
        scores = regression_metrics(truth[present, k], predicted[present, k], weight[present])
        relative = float(np.sqrt(1 - scores["r2"]))
        found[name] = {"n_rows": int(present.sum()), **scores, "standardized_rmse": relative}
    if not found:
        raise InvalidDataError(
            "y must have values, got missing ones or zero weights only. Check the names of the "
            "target columns."
        )
    return found


def interval_metrics(y: Any, intervals: Any, levels: Sequence[float]) -> list[dict[str, float]]:
    """Compare intervals with the truth.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True values, NaN where missing.
    intervals : array-like of shape (n_rows, 2, k)
        Lower and upper bounds at each level.
    levels : sequence of float, of length k

    Returns
    -------
    list of dict of str to float
        For each level `level`, `coverage`, the share of true values inside, bounds included, and
        `mean_width`.

    Examples
    --------
    >>> interval_metrics([1.0, 5.0], [[[0.0], [2.0]], [[0.0], [4.0]]], [0.5])
    [{'level': 0.5, 'coverage': 0.5, 'mean_width': 3.0}]
    """
    scores = IntervalScores(levels)
    scores.add(y, intervals)
    if not scores.n_rows:
        raise InvalidDataError("y must have values, got missing ones only.")
    return scores.result()


class IntervalScores:
    """Coverage and mean width of intervals, batch by batch, without keeping the rows.

    Parameters
    ----------
    levels : sequence of float, of length k

    Examples
    --------
    >>> scores = IntervalScores([0.5])
    >>> scores.add([1.0], [[[0.0], [2.0]]])
    >>> scores.add([5.0], [[[0.0], [4.0]]])
    >>> scores.result()
    [{'level': 0.5, 'coverage': 0.5, 'mean_width': 3.0}]
    """

    def __init__(self, levels: Sequence[float]) -> None:
        self.levels = levels
        self.n_rows = 0
        self.n_inside, self.width = np.zeros((2, len(levels)))  # (k,) each

    def add(self, y: Any, intervals: Any) -> None:
        """Take in a batch; arguments as of `interval_metrics`."""
        truth, bounds = np.asarray(y, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
        if truth.ndim != 1 or bounds.shape != (len(truth), 2, len(self.levels)):
            raise InvalidDataError(
                "intervals must have shape (n_rows, 2, n_levels), and y (n_rows,), got shapes "
                f"{bounds.shape} and {truth.shape} and {len(self.levels)} level(s)."
            )
        known = ~np.isnan(truth)
        if not known.any():
            return
        low, high = bounds[known, 0], bounds[known, 1]  # (n, k)
        inside = (low <= truth[known, None]) & (truth[known, None] <= high)
        width = np.mean(high / 2 - low / 2, axis=0) * 2  # a difference may leave float64
        self.n_rows += len(low)
        self.n_inside += inside.sum(axis=0)
        self.width += len(low) / self.n_rows * (width - self.width)  # a sum may leave float64

    def result(self) -> list[dict[str, float]]:
        """What `interval_metrics` returns, of all batches."""
        coverage = self.n_inside / max(self.n_rows, 1)
        return [
            {"level": float(level), "coverage": float(share), "mean_width": float(mean)}
            for level, share, mean in zip(self.levels, coverage, self.width, strict=True)
        ]


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


def _check(y: Any, prediction: Any, sample_weight: Any) -> tuple[Values, Values, Values]:
    truth = np.asarray(y, dtype=np.float64)
    predicted = np.asarray(prediction, dtype=np.float64)
    weight = np.ones(truth.shape) if sample_weight is None else np.asarray(sample_weight, float)
    if truth.ndim != 1 or not truth.shape == predicted.shape == weight.shape or not len(truth):
        raise InvalidDataError(
            "y, prediction and sample_weight must be 1D, of one length, and not empty, got shapes "
            f"{truth.shape}, {predicted.shape} and {weight.shape}."
        )
    if not (np.isfinite(truth).all() and np.isfinite(predicted).all()):
        raise InvalidDataError("y and prediction must be finite, got infinite or missing values.")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InvalidDataError("sample_weight must be finite, >= 0 and somewhere > 0.")
    kept = weight > 0
    return truth[kept], predicted[kept], weight[kept]


def _scaled(value: float, exponent: int) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(value, exponent))


def _bins(values: Values, truth: Values, n_bins: int) -> NDArray[np.int64]:
    edges = np.linspace(truth.min(), truth.max(), n_bins + 1)
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_bins - 1)


def _ranks(values: Values, weight: Values) -> Values:
    """Weight below each value, plus half of the weight at it."""
    _, group = np.unique(values, return_inverse=True)
    at = np.bincount(group, weights=weight)
    return (np.cumsum(at) - at / 2)[group]


def _correlation(a: Values, b: Values, weight: Values) -> float:
    a, b = (side - np.average(side, weights=weight) for side in (a, b))
    scale = np.sqrt(np.sum(weight * a**2) * np.sum(weight * b**2))
    # Rounding may leave a hair of spread in constant ranks, or push the ratio beyond one.
    if scale <= 1e-12 * np.sum(weight) ** 3:
        return 0.0
    return float(np.clip(np.sum(weight * a * b) / scale, -1.0, 1.0))
