"""Levels of quantiles from what users ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tabnsm.errors import InvalidOptionError
from tabnsm.rules import is_finite, require, require_one_of

OUTPUT_TYPES = ("mean", "median", "quantiles")
DECILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def quantile_levels(output_type: str, quantiles: Sequence[float] | None) -> list[float] | None:
    """Levels that `predict` is to give; None for the mean.

    Examples
    --------
    >>> quantile_levels("median", None), quantile_levels("quantiles", [0.9, 0.1])
    ([0.5], [0.9, 0.1])
    """
    require_one_of("output_type", output_type, OUTPUT_TYPES)
    if output_type != "quantiles":
        require(
            quantiles is None, 'quantiles must be None but for output_type="quantiles"', quantiles
        )
        return None if output_type == "mean" else [0.5]
    return _checked(DECILES if quantiles is None else quantiles, "quantiles")


def interval_levels(confidence_level: float | Sequence[float]) -> tuple[list[float], bool]:
    """Levels of all lower, then of all upper bounds, and whether one level was given.

    Examples
    --------
    >>> interval_levels([0.5, 0.75])
    ([0.25, 0.125, 0.75, 0.875], False)
    """
    is_single = np.ndim(confidence_level) == 0
    given: Any = [confidence_level] if is_single else confidence_level
    levels = _checked(given, "confidence_level")
    lower, upper = ([(1 + sign * level) / 2 for level in levels] for sign in (-1, 1))
    return lower + upper, is_single


def _checked(levels: Any, name: str) -> list[float]:
    rule = f"{name} must be between 0 and 1, both excluded"
    if np.ndim(levels) != 1 or not len(levels):
        raise InvalidOptionError(f"{rule}, in a list of at least one, got {levels!r}.")
    for level in levels:
        require(is_finite(level) and 0 < level < 1, rule, level)
    return [float(level) for level in levels]
