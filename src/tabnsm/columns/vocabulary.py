"""Categories as integer codes: 0 for unseen values, then the known values by name."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.tables.column import Factor
from tabnsm.tables.stored import choose


def find_vocabulary(factor: Factor, rows: NDArray[np.int64] | None) -> tuple[str, ...]:
    """Distinct values of the fit rows, sorted, so that the order of rows does not matter."""
    seen = np.flatnonzero(factor.counts(rows)[:-1])
    return tuple(sorted(choose(factor.values, seen)))


def encode_categories(
    factor: Factor, vocabulary: Sequence[str], *, missing_code: bool
) -> NDArray[np.int64]:
    """Integer code of each row.

    Known values are 1, 2, ...; others are 0, and so are missing ones unless they have a code of
    their own, the last one.

    Examples
    --------
    >>> factor = Factor(np.array([0, 1, -1, 2]), ["b", "a", "new"])
    >>> encode_categories(factor, ("a", "b"), missing_code=True)
    array([2, 1, 3, 0])
    """
    code_of = {value: code for code, value in enumerate(vocabulary, start=1)}
    known = (code_of.get(value, 0) for value in factor.values)
    missing = len(vocabulary) + 1 if missing_code else 0
    codes = itertools.chain(known, [missing])
    return np.fromiter(codes, dtype=np.int64, count=len(factor.values) + 1)[factor.codes]


def n_codes(vocabulary: Sequence[str], *, missing_code: bool) -> int:
    """Number of codes, code 0 included."""
    return len(vocabulary) + 1 + int(missing_code)
