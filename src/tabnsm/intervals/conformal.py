"""Quantiles of scores that hold for a further row, whatever the distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_ROUNDING = 1e-9  # of a rank, such as (19 + 1) * 0.95, which is to be 19


def conformal_quantiles(
    scores: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    levels: Sequence[float],
) -> NDArray[np.float64]:
    """Quantiles of the score of a further row that is exchangeable with these.

    A level above one half has the score of rank ceil((n + 1) level), so that the further row's
    score is at most that with a probability of at least the level; a level below has the rank
    floor((n + 1) level), so that it is below with at most that probability. Weights count as rows;
    the further row has the mean weight. At one half the result is midway between both.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        Sorted, at least one.
    weight : ndarray of float64, shape (n,), or None
        Above 0, in the order of the scores; None weighs all alike.
    levels : sequence of float
        Between 0 and 1, both excluded.

    Returns
    -------
    ndarray of float64, shape (n_levels,)
        Never falls as the level rises; infinite where the rows are too few for a level, which is
        outside of `reachable_levels`.

    Examples
    --------
    >>> scores = np.arange(1.0, 10.0)  # nine rows
    >>> conformal_quantiles(scores, None, [0.05, 0.1, 0.5, 0.9, 0.95])
    array([-inf,   1.,   5.,   9.,  inf])
    """
    n = len(scores)
    share = np.ones(n) if weight is None else weight / weight.mean()
    # Before the first score and after the last one is the further row.
    padded = np.concatenate([[-np.inf], scores, [np.inf]])
    below, above = np.cumsum(share), np.cumsum(share[::-1])
    found = np.empty(len(levels))
    for k, level in enumerate(levels):
        upper = padded[1 + np.searchsorted(below, level * (n + 1) - _ROUNDING)]
        lower = padded[n - np.searchsorted(above, (1 - level) * (n + 1) - _ROUNDING)]
        found[k] = upper if level > 0.5 else lower
        if level == 0.5:
            found[k] = lower + (upper - lower) / 2 if n > 1 else scores[0]
    return found


def reachable_levels(n_rows: int) -> tuple[float, float]:
    """Lowest and highest level whose quantile is finite.

    Examples
    --------
    >>> reachable_levels(9)
    (0.1, 0.9)
    """
    return 1 / (n_rows + 1), n_rows / (n_rows + 1)


def group_weights(
    groups: NDArray[np.int64], weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Weights with which every group counts the same, its rows by their share of its weight.

    Parameters
    ----------
    groups : ndarray of int, shape (n,)
    weight : ndarray of float64, shape (n,), or None

    Examples
    --------
    >>> group_weights(np.array([0, 1, 1]), None)
    array([1. , 0.5, 0.5])
    """
    weight = np.ones(len(groups)) if weight is None else weight
    _, place = np.unique(groups, return_inverse=True)
    total = np.bincount(place, weights=weight)
    return np.asarray(weight / total[place], dtype=np.float64)
