"""Weighted conformal quantiles by their definition, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import inf


def conformal_quantile(scores: list[float], weights: list[int], level: Fraction) -> float:
    """Quantile of the score of one further row, which has the mean weight of the others.

    Above one half: the least score such that the weight at or below it, as a share of all weight
    and the further row's, is at least the level; infinite if there is none. Below: the same of the
    negative scores and one minus the level. At one half: midway between both.
    """
    if level < Fraction(1, 2):
        return -_upper([-score for score in scores], weights, 1 - level)
    if level > Fraction(1, 2):
        return _upper(scores, weights, level)
    low = -_upper([-score for score in scores], weights, level)
    return (low + _upper(scores, weights, level)) / 2


def _upper(scores: list[float], weights: list[int], level: Fraction) -> float:
    total = Fraction(sum(weights)) * (len(scores) + 1) / len(scores)
    for score in sorted(scores):
        below = sum(w for s, w in zip(scores, weights, strict=True) if s <= score)
        if Fraction(below) / total >= level:
            return score
    return inf
