"""Text columns joined, or each by itself: the distinct strings, and which of them each row has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.large import row_slices
from tabnsm.tables.column import Factor
from tabnsm.tables.stored import PART, StoredStrings, as_stored, choose, parts_of, store_distinct
from tabnsm.work_folder import WorkFolder


def join_texts(
    factors: Sequence[Factor], folder: WorkFolder | None = None
) -> tuple[Sequence[str], NDArray[np.int64]]:
    """Distinct joined strings, and which of them each row has.

    The values of a row are joined with one space, a missing one as the empty string. Only
    distinct combinations are ever written out.

    Parameters
    ----------
    factors : sequence of Factor
        Text columns of one table.
    folder : WorkFolder or None
        Where the strings are kept if those of a column are in files.

    Returns
    -------
    tuple
        The distinct strings, and the position of each row's string among them.

    Examples
    --------
    >>> first = Factor(np.array([0, 1, 0]), ["red", "blue"])
    >>> second = Factor(np.array([0, -1, 0]), ["car"])
    >>> join_texts([first, second])
    (['red car', 'blue '], array([0, 1, 0]))
    """
    if folder is not None and any(isinstance(f.values, StoredStrings) for f in factors):
        return _join_stored(factors, folder)
    key, first_row = _combinations(factors)
    columns = [_values_at([*factor.values, ""], factor.codes[first_row]) for factor in factors]
    position_of: dict[str, int] = {}
    position = np.empty(len(first_row), dtype=np.int64)
    # Different combinations can join to one string; rows in order of first appearance.
    for combination in np.argsort(first_row):
        text = " ".join(values[combination] for values in columns)
        position[combination] = position_of.setdefault(text, len(position_of))
    return list(position_of), position[key]


def _join_stored(
    factors: Sequence[Factor], folder: WorkFolder
) -> tuple[Sequence[str], NDArray[np.int64]]:
    """The same for columns whose distinct strings are in files."""
    if len(factors) == 1:
        key, first_row = _combinations(factors)
        order = np.argsort(first_row)
        position = np.empty_like(order)
        position[order] = np.arange(len(order))
        return choose(factors[0].values, factors[0].codes[first_row[order]]), position[key]

    def read() -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [as_stored(factor.values) for factor in factors]
        n_rows = len(factors[0].codes)
        for start in range(0, n_rows, PART):
            rows = slice(start, start + PART)
            texts = [
                values.take(factor.codes[rows]).arrow(slice(None))
                for values, factor in zip(columns, factors, strict=True)
            ]
            yield pc.binary_join_element_wise(*texts, pa.scalar(" ", pa.large_string()))

    index, texts = store_distinct(read, len(factors[0].codes), folder, keep_blank=True)
    return texts, index


def _combinations(factors: Sequence[Factor]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number of each row's combination of codes, and the first row with each combination."""
    if len(factors) == 1:
        # Without a sort: a slice of the rows at a time, from the last to the first.
        codes = factors[0].codes
        first = np.full(len(factors[0].values) + 1, -1, dtype=np.int64)
        for rows in reversed(list(row_slices(len(codes)))):
            first[codes[rows][::-1]] = np.arange(rows.start, rows.stop)[::-1]
        used = np.flatnonzero(first >= 0)
        number = np.full(len(first), -1, dtype=np.int64)
        number[used] = np.arange(len(used))
        return number[codes], first[used]
    key = np.zeros(len(factors[0].codes), dtype=np.int64)
    for factor in factors:
        # Renumbering after each column keeps the key far below the limit of int64.
        key = key * (len(factor.values) + 1) + factor.codes + 1
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
    return key, np.unique(key, return_index=True)[1]


def _values_at(values: Sequence[str], codes: NDArray[np.int64]) -> list[str]:
    return [values[code] for code in codes.tolist()]


def all_distinct(
    texts: Sequence[Sequence[str]], folder: WorkFolder | None
) -> tuple[Sequence[str], list[NDArray[np.int64]]]:
    """The strings of all lists, each once, and where those of every list are among them.

    No places where there is only one list.
    """
    if len(texts) == 1:
        return texts[0], []
    ends = np.cumsum([len(part) for part in texts])
    if folder is not None and any(isinstance(part, StoredStrings) for part in texts):

        def read() -> Iterator[Any]:
            import pyarrow as pa

            for strings in itertools.chain.from_iterable(map(parts_of, texts)):
                yield pa.array(strings, pa.large_string())

        places, distinct = store_distinct(read, int(ends[-1]), folder, keep_blank=True)
        return distinct, np.split(places, ends[:-1])
    place_of = {text: k for k, text in enumerate(dict.fromkeys(itertools.chain(*texts)))}
    return list(place_of), [
        np.fromiter((place_of[text] for text in part), dtype=np.int64) for part in texts
    ]
