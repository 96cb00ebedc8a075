"""TimeBudget: the seconds of one fit, counted from its call."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

clock: Callable[[], float] = time.monotonic
"""Seconds that pass; measurements on a busy machine count those of the process instead."""


def now() -> float:
    """Seconds on the clock that time limits are counted by."""
    return clock()


class TimeBudget:
    """Seconds that a fit may take, from the moment this is made.

    Parameters
    ----------
    limit : float or None
        Seconds; None is no limit.

    Examples
    --------
    >>> TimeBudget(None).seconds_left()
    inf
    >>> budget = TimeBudget(60.0)
    >>> budget.charge(100.0)
    >>> budget.seconds_left()
    0.0
    """

    def __init__(self, limit: float | None) -> None:
        self._ends = math.inf if limit is None else now() + limit

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self._ends)

    def seconds_left(self) -> float:
        """Seconds until the limit, at least 0; infinite without a limit."""
        return max(self._ends - now(), 0.0)

    def charge(self, seconds: float) -> None:
        """Count seconds that an earlier run, which is resumed, has used."""
        self._ends -= seconds

    @contextmanager
    def reserved(self, seconds: float) -> Iterator[None]:
        """Set seconds apart for what comes after this block.

        Examples
        --------
        >>> budget = TimeBudget(60.0)
        >>> with budget.reserved(20.0):
        ...     budget.seconds_left() <= 40
        True
        >>> budget.seconds_left() > 50
        True
        """
        self._ends -= seconds
        try:
            yield
        finally:
            self._ends += seconds
