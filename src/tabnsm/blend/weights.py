"""Weights of a blend, by greedy selection on held-out predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tabnsm.metrics import weighted_mae, weighted_rmse

PRIOR_ROWS = 100
"""Held-out rows that count as much as the rule for few rows."""
MIN_SHARE = 0.02
"""Share below which a member is not worth its part of the file and of the time to predict."""
N_STEPS = 40
"""Members that are drawn, with replacement; a weight is a multiple of one over it."""


def greedy_weights(
    predictions: Sequence[NDArray[np.float64]],
    target: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
    metric: Literal["rmse", "mae"] = "rmse",
    n_steps: int = N_STEPS,
) -> NDArray[np.float64]:
    """Weights of members that together predict held-out rows best (Caruana and others, 2004).

    Starts with the best member and adds, step by step, the one after which the mean of all that
    were added has the lowest error. A member can be added many times. Ties go to the first.

    Parameters
    ----------
    predictions : sequence of ndarray of float64, shape (n,)
        Of each member for the held-out rows.
    target : ndarray of float64, shape (n,)
    weight : ndarray of float64, shape (n,), or None
    metric : {"rmse", "mae"}
    n_steps : int, default 40

    Returns
    -------
    ndarray of float64, shape (n_members,)
        At least 0, with the sum 1.

    Examples
    --------
    >>> target = np.array([1.0, 2.0, 3.0])
    >>> greedy_weights([target + 1, target - 1, target + 9], target)
    array([0.5, 0.5, 0. ])
    """
    score = {"rmse": weighted_rmse, "mae": weighted_mae}[metric]
    counts = np.zeros(len(predictions))
    total = np.zeros_like(target)
    for step in range(1, n_steps + 1):
        errors = [score(target, (total + added) / step, weight) for added in predictions]
        best = int(np.argmin(errors))
        counts[best] += 1
        total = total + predictions[best]
    return counts / n_steps


def blend_weights(
    predictions: Sequence[NDArray[np.float64]],
    target: NDArray[np.float64],
    weight: NDArray[np.float64] | None = None,
    metric: Literal["rmse", "mae"] = "rmse",
) -> NDArray[np.float64]:
    """Greedy weights, drawn to those that fall with the error alone where rows are few.

    A handful of held-out rows says which members are bad, but not which of the good ones is best;
    their mean is then the safer choice.

    Parameters
    ----------
    predictions, target, weight, metric
        As in `greedy_weights`.

    Returns
    -------
    ndarray of float64, shape (n_members,)
        At least 0, with the sum 1; shares below `MIN_SHARE` are 0.

    Examples
    --------
    >>> target = np.array([1.0, 2.0, 3.0])
    >>> blend_weights([target + 1.0, target + 1.01, target + 9], target).round(2)
    array([0.52, 0.48, 0.  ])
    """
    score = {"rmse": weighted_rmse, "mae": weighted_mae}[metric]
    usable = [k for k, values in enumerate(predictions) if np.isfinite(values).all()]
    members = [predictions[k] for k in usable]
    errors = np.array([score(target, values, weight) for values in members])
    least = errors.min()
    over = np.where(errors == least, 0.0, np.inf) if least == 0 else errors / least - 1
    # About how far an error measured on so few rows is off, but at least a twentieth.
    prior = np.exp(-over / max(0.05, len(target) ** -0.5))
    greedy = greedy_weights(members, target, weight, metric)
    shares = len(target) * greedy + PRIOR_ROWS * prior / prior.sum()
    shares /= shares.sum()
    shares[shares < MIN_SHARE] = 0.0
    found = np.zeros(len(predictions))
    found[usable] = shares / shares.sum()
    return found
