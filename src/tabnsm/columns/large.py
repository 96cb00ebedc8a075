"""What is done differently for large tables, in memory or not, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE_ROWS = 2**21
"""Rows above which some statistics come from a sample, or are summed in another order."""
SLICE_ROWS = 2**18
"""Rows that are worked on at a time where the result is the same."""


def row_slices(n_rows: int) -> Iterator[slice]:
    """Consecutive parts of the rows.

    Examples
    --------
    >>> list(row_slices(300_000))
    [slice(0, 262144, None), slice(262144, 300000, None)]
    """
    for start in range(0, n_rows, SLICE_ROWS):
        yield slice(start, min(start + SLICE_ROWS, n_rows))


def sample_rows(n_rows: int, n_sampled: int) -> NDArray[np.int64]:
    """Some rows of a large table, ascending, the same each time.

    Examples
    --------
    >>> len(sample_rows(10_000, 100))
    100
    """
    drawn = np.random.default_rng(0).choice(n_rows, n_sampled, replace=False, shuffle=False)
    return np.asarray(np.sort(drawn))


def count_distinct(values: NDArray[Any]) -> int:
    """Number of different values, none of them NaN; sorts the array itself.

    Examples
    --------
    >>> count_distinct(np.array([3, 1, 3]))
    2
    """
    # Sorting is many times faster than hashing here, and needs no further memory.
    values.sort()
    return int(np.count_nonzero(values[1:] != values[:-1])) + min(len(values), 1)
