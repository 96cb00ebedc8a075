"""Strings that stand for a missing value, and how many odd strings a column may have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.stored import choose, in_parts

MIN_READABLE_SHARE = 0.5
"""Share of the present values that must be numbers, or dates, where the others are markers."""
MAX_OTHER_SHARE = 0.02
"""Share of the present values that may be neither readable nor a marker."""
MIN_DISTINCT = 10
"""Distinct values below which a string that is no marker is a category, not an odd number."""
SAMPLE_SIZE = 20
"""Number of distinct strings that are looked at to tell free text from numbers and dates."""

# fmt: off
_MARKERS = frozenset({
    "?", "??", "-", "--", "---", "–", "—", ".", "..", "...", "*", "**",
    "na", "n/a", "n.a.", "n.a", "nan", "nat", "none", "null", "nil", "nd", "n/d", "unk", "tbd",
    "missing", "unknown", "undefined", "unspecified", "not available", "not applicable",
    "not known", "not specified", "not reported", "no data", "no value",
    "#n/a", "#na", "#n/a n/a", "<na>", "<null>", "(null)", "(missing)", "(none)", "[null]",
    "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!",
})
# fmt: on


@in_parts
def is_marker(values: Sequence[str]) -> NDArray[np.bool_]:
    """Which strings stand for a missing value, in upper or lower case.

    Examples
    --------
    >>> is_marker(["?", " N/A ", "0", "Unknown"])
    array([ True,  True, False,  True])
    """
    found = (value.strip().lower() in _MARKERS for value in values)
    return np.fromiter(found, dtype=bool, count=len(values))


def pick(values: Sequence[str], chosen: NDArray[np.bool_]) -> Sequence[str]:
    """The strings that a mask chooses."""
    return choose(values, np.flatnonzero(chosen))


def frequent_values(
    values: Sequence[str], counts: NDArray[np.int64]
) -> tuple[Sequence[str], NDArray[np.int64]]:
    """A few strings that occur most often and are no markers.

    At most `SAMPLE_SIZE` of them, and how often each occurs.
    """
    # Twice as many, so that markers in several spellings leave enough others.
    order = np.argsort(-counts, kind="stable")[: 2 * SAMPLE_SIZE]
    frequent = [values[position] for position in order]
    others = ~is_marker(frequent)
    return pick(frequent, others)[:SAMPLE_SIZE], counts[order][others][:SAMPLE_SIZE]


def mostly_readable(
    readable: NDArray[np.bool_],
    markers: NDArray[np.bool_],
    counts: NDArray[np.int64],
    n_distinct: int,
) -> bool:
    """Whether a column of strings is one of numbers, or of dates, in which others are missing.

    `n_distinct` counts distinct numbers or dates.
    """
    readable = readable & ~markers
    others = ~(readable | markers)
    n_present = counts.sum()
    if not readable.any():
        return False
    if others.any():
        too_many = counts[others].sum() > MAX_OTHER_SHARE * n_present
        if too_many or len(counts) < MIN_DISTINCT:
            return False
    if readable.all():
        return True
    return bool(n_distinct >= 2 and counts[readable].sum() >= MIN_READABLE_SHARE * n_present)
