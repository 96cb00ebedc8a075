"""RISE's bins and weights, row by row and in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def difficulty_bins(losses: Sequence[float], n_bins: int) -> list[int]:
    """Bin of each row: how many of the quantiles 1/G, 2/G, ... its rank has reached."""
    bins = []
    for loss in losses:
        if math.isnan(loss):
            bins.append(n_bins - 1)
            continue
        n_smaller = sum(1 for other in losses if other < loss)
        share = Fraction(n_smaller, len(losses))
        bins.append(sum(1 for g in range(1, n_bins) if share >= Fraction(g, n_bins)))
    return bins


def difficulty_weights(bins: Sequence[int], n_bins: int, max_boost: float) -> list[Fraction]:
    """The paper's 1 + g (beta - 1) / (G - 1)."""
    if n_bins == 1:
        return [Fraction(1)] * len(bins)
    return [1 + g * (Fraction(max_boost) - 1) / (n_bins - 1) for g in bins]


def expected_counts(weights: Sequence[float], n_draws: int) -> list[Fraction]:
    """Expected number of times that each row is drawn."""
    exact = [Fraction(weight) for weight in weights]
    return [n_draws * weight / sum(exact) for weight in exact]
