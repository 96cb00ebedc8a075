"""A table whose columns are found by their position at fit, read in blocks where possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.schema import ColumnSpec
from tabnsm.tables.column import Column
from tabnsm.tables.reading import Unreadable, read_numbers
from tabnsm.tables.table_input import Table

# Numbers go through float64 a few columns at a time, so that no second table is ever built.
_BLOCK_CELLS = 1_000_000

NumberBlock = tuple[list[ColumnSpec], NDArray[np.float64], Unreadable | None]


@dataclass(frozen=True)
class MatchedTable:
    """The rows to encode, and the position among them of each column of the fit."""

    table: Table
    positions: Sequence[int]

    @classmethod
    def at_fit(cls, table: Table) -> MatchedTable:
        """The table of the fit itself, in which every column is at its own position."""
        return cls(table, range(table.n_columns))

    def column(self, spec: ColumnSpec) -> Column:
        """One column with its conversions."""
        return self.table.column(self.table.names[self.positions[spec.position]])

    def number_blocks(self, specs: Sequence[ColumnSpec]) -> Iterator[NumberBlock]:
        """Number columns a few at a time as float64; those stored otherwise one by one, last.

        Yields some columns, their values in all rows, and the strings that are no numbers.
        """
        is_number = self.table.is_number
        plain = [spec for spec in specs if is_number[self.positions[spec.position]]]
        width = max(1, _BLOCK_CELLS // max(1, self.table.n_rows))
        for start in range(0, len(plain), width):
            block = plain[start : start + width]
            matrix = self.table.numbers([self.positions[spec.position] for spec in block])
            yield block, np.asarray(matrix, dtype=np.float64), None
        for spec in specs:
            if not is_number[self.positions[spec.position]]:
                values, unreadable = read_numbers(
                    self.column(spec), spec.number_format, from_dates=spec.from_dates
                )
                yield [spec], values[:, None], unreadable
