"""Values of a table as the encoder read them, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabnsm.tables.reading import read_numbers

if TYPE_CHECKING:
    from tabnsm.columns.matched import MatchedTable
    from tabnsm.columns.schema import ColumnSpec


def column_values(matched: MatchedTable, spec: ColumnSpec) -> np.ndarray:
    """Values of one column: numbers as float64, all others as strings; NaN or None is missing.

    Parameters
    ----------
    matched : MatchedTable
        The rows.
    spec : ColumnSpec
        The column of the fit.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    column = matched.column(spec)
    if spec.kind == "numeric":
        return read_numbers(column, spec.number_format, from_dates=spec.from_dates)[0]
    factor = column.to_factor()
    strings = np.empty(len(factor.values) + 1, dtype=object)
    strings[: len(factor.values)] = factor.values
    return np.asarray(strings[factor.codes])  # the code -1 finds the last, which is None


def joined_values(matched: MatchedTable, specs: Sequence[ColumnSpec]) -> np.ndarray:
    """Text columns of each row as one string, as they are embedded; None if all are missing.

    Parameters
    ----------
    matched : MatchedTable
        The rows.
    specs : sequence of ColumnSpec
        Text columns.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    parts = [column_values(matched, spec) for spec in specs]
    joined = [" ".join(filter(None, row)) or None for row in zip(*parts, strict=True)]
    values = np.empty(len(joined), dtype=object)
    values[:] = joined
    return values
