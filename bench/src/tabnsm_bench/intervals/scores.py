"""Coverage, width and pinball loss of predicted quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = (0.5, 0.8, 0.9, 0.95)


def interval_ends(level: float) -> tuple[float, float]:
    """Levels of the quantiles that bound an interval with equal tails.

    Examples
    --------
    >>> interval_ends(0.9)
    (0.05, 0.95)
    """
    return round((1 - level) / 2, 6), round((1 + level) / 2, 6)


QUANTILES = tuple(sorted({0.5, *(end for level in LEVELS for end in interval_ends(level))}))


def pinball_loss(truth: NDArray[np.float64], quantile: NDArray[np.float64], level: float) -> float:
    """Mean pinball loss of one predicted quantile.

    Examples
    --------
    >>> pinball_loss(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 0.75)
    0.5
    """
    above = truth - quantile
    return float(np.mean(np.maximum(level * above, (level - 1) * above)))


def interval_scores(
    truth: NDArray[np.float64], quantiles: Mapping[float, NDArray[np.float64]]
) -> dict[str, Any]:
    """What a study keeps of one method, table and split.

    Parameters
    ----------
    truth : ndarray of float64, shape (n,)
        Of the test rows.
    quantiles : mapping of float to ndarray of float64, shape (n,)
        The predicted quantile of each level of `QUANTILES`.

    Returns
    -------
    dict
        `pinball`, the mean over the levels, and for each interval its coverage, also by tercile
        of width and of the predicted median, and its mean width; losses and widths are in
        standard deviations of the true values.
    """
    scale = float(truth.std())
    by_prediction = terciles(quantiles[0.5])
    intervals = []
    for level in LEVELS:
        low, high = (quantiles[end] for end in interval_ends(level))
        inside = (low <= truth) & (truth <= high)
        by_width = terciles(high - low)
        intervals.append(
            {
                "level": level,
                "coverage": float(inside.mean()),
                "by_width": [float(inside[by_width == k].mean()) for k in range(3)],
                "by_prediction": [float(inside[by_prediction == k].mean()) for k in range(3)],
                "width": float((high - low).mean()) / scale,
            }
        )
    losses = [pinball_loss(truth, quantiles[level], level) for level in QUANTILES]
    crossings = np.diff(np.stack([quantiles[level] for level in QUANTILES]), axis=0) < 0
    return {
        "n_test": len(truth),
        "pinball": float(np.mean(losses)) / scale,
        "crossed_rows": float(crossings.any(axis=0).mean()),
        "intervals": intervals,
    }


def terciles(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Third of the rows that each belongs to, 0 to 2, by rank; ties in order.

    Examples
    --------
    >>> terciles(np.array([5.0, 1.0, 3.0]))
    array([2, 0, 1])
    """
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return np.asarray(rank * 3 // max(1, len(values)), dtype=np.int64)
