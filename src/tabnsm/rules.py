"""Rules that options follow; an option outside of them is refused before any work."""

from __future__ import annotations

import math
from numbers import Integral, Real

from tabnsm.errors import InvalidOptionError


def require(condition: bool, rule: str, value: object) -> None:
    """Raise InvalidOptionError with the rule and the value unless `condition` holds.

    Examples
    --------
    >>> require(False, "window_size must be an integer >= 1", 0)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: window_size must be an integer >= 1, got 0.
    """
    if not condition:
        raise InvalidOptionError(f"{rule}, got {value!r}.")


def require_one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise InvalidOptionError unless `value` is one of the allowed ones.

    Examples
    --------
    >>> require_one_of("gates", "row", ("head", "feature"))
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: gates must be one of ('head', 'feature'), got 'row'.
    """
    require(value in allowed, f"{name} must be one of {allowed}", value)


def is_integer(value: object, least: int) -> bool:
    """Whether `value` is an integer, Python's or numpy's and no bool, of at least `least`."""
    return type(value) is not bool and isinstance(value, Integral) and int(value) >= least


def is_finite(value: object) -> bool:
    """Whether `value` is a finite real number and no bool."""
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)
