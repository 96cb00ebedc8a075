"""Tests on ranks, each a formula: Friedman, Nemenyi, Wilcoxon."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rank_methods(scores: Floats) -> Floats:
    """Rank the methods on each dataset: 1 is best, ties share, missing is the worst rank.

    Parameters
    ----------
    scores : ndarray of shape (n_methods, n_datasets)
        Lower is better; NaN is missing.

    Returns
    -------
    ndarray of shape (n_methods, n_datasets)

    Examples
    --------
    >>> rank_methods(np.array([[1.0, 2.0], [1.0, np.nan], [5.0, 1.0], [9.0, np.nan]])).T
    array([[1.5, 1.5, 3. , 4. ],
           [2. , 4. , 1. , 4. ]])
    """
    from scipy.stats import rankdata

    ranks = np.full(scores.shape, float(len(scores)))
    for column, values in enumerate(scores.T):
        known = ~np.isnan(values)
        ranks[known, column] = rankdata(values[known])
    return ranks


def friedman_chi2(ranks: Floats) -> tuple[float, float]:
    """Friedman's statistic without and with the correction for ties.

    Parameters
    ----------
    ranks : ndarray of shape (n_methods, n_datasets)
        As from `rank_methods`, with nothing missing.

    Returns
    -------
    chi2, chi2_tie_corrected : float
        Both 0 if all methods tie everywhere.

    Examples
    --------
    >>> friedman_chi2(np.array([[1.0, 1.0], [2.5, 2.0], [2.5, 3.0]]))
    (3.25, 3.7142857142857144)
    """
    k, n = ranks.shape
    between = float(np.sum((ranks.mean(axis=1) - (k + 1) / 2) ** 2))
    chi2 = 12 * n / (k * (k + 1)) * between
    tied = sum(
        float(count**3 - count)
        for column in ranks.T
        for count in np.unique(column, return_counts=True)[1]
    )
    untied = 1 - tied / (n * k * (k**2 - 1))
    return chi2, chi2 / untied if untied > 0 else 0.0


def critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> tuple[float, float]:
    """Nemenyi's critical difference of average ranks.

    Parameters
    ----------
    n_methods, n_datasets : int
        Size of the table.
    alpha : float, default 0.05
        Level of the test.

    Returns
    -------
    q, cd : float
        The studentised range for infinitely many degrees of freedom over the root of 2, and
        the smallest difference that is significant.

    Examples
    --------
    >>> [round(value, 3) for value in critical_difference(4, 14)]
    [2.569, 1.254]
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1 - alpha, n_methods, np.inf)) / np.sqrt(2)
    return float(q), float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def signed_rank_p(differences: Floats) -> float:
    """Exact p of Wilcoxon's signed-rank test that the differences lie below zero.

    Zeros are dropped. The distribution counts all choices of signs, so that ties need no
    approximation.

    Parameters
    ----------
    differences : ndarray of shape (n,)
        Ours minus theirs.

    Returns
    -------
    float
        1 if all differences are zero.

    Examples
    --------
    >>> signed_rank_p(np.array([-1.0, -2.0, -3.0])), signed_rank_p(np.array([-1.0, -2.0, 3.0]))
    (0.125, 0.625)
    """
    from scipy.stats import rankdata

    differences = differences[differences != 0]
    # Twice the ranks are whole numbers also where ties share one.
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(int)
    chances = np.zeros(doubled.sum() + 1)  # of each sum of the ranks of positive differences
    chances[0] = 1.0
    for rank in doubled:
        chances[rank:] = (chances[rank:] + chances[: len(chances) - rank]) / 2
        chances[:rank] /= 2
    return float(min(1.0, chances[: doubled[differences > 0].sum() + 1].sum()))
