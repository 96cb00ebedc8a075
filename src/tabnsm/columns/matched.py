"""A table whose columns are found by their position at fit, read in blocks where possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.schema import ColumnSpec
from tabnsm.errors import InvalidDataError, warn
from tabnsm.tables.column import Column
from tabnsm.tables.reading import Unreadable, read_numbers
from tabnsm.tables.table_input import Table
from tabnsm.work_folder import WorkFolder

# Numbers go through float64 a few columns at a time, so that no second table is ever built.
_BLOCK_CELLS = 1_000_000

NumberBlock = tuple[list[ColumnSpec], NDArray[np.float64], Unreadable | None]


@dataclass(frozen=True)
class MatchedTable:
    """The rows to encode, and the position among them of each column of the fit, -1 if absent."""

    table: Table
    positions: Sequence[int]
    folder: WorkFolder | None = None
    """Where large arrays go; None is in memory."""

    @classmethod
    def at_fit(cls, table: Table, folder: WorkFolder | None = None) -> MatchedTable:
        """The table of the fit itself, in which every column is at its own position."""
        return cls(table, range(table.n_columns), folder)

    @classmethod
    def by_name(cls, table: Table, specs: Sequence[ColumnSpec], has_names: bool) -> MatchedTable:
        """Another table, whose columns are found by name where both have names."""
        n_columns = len(specs)
        if not (has_names and table.has_names):
            if table.n_columns != n_columns:
                raise InvalidDataError(
                    f"X has {table.n_columns} features, but TabNSMRegressor is expecting "
                    f"{n_columns} features as input."
                )
            return cls(table, range(n_columns))
        known = set(table.names)
        needed = [s.name for s in specs if s.kind != "drop" and not s.optional]
        missing = [name for name in needed if name not in known]
        if missing:
            raise InvalidDataError(
                "A table must have the columns the model was fitted with, got none named "
                f"{', '.join(map(repr, missing[:5]))}"
                f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}. "
                "Add them (empty values are allowed) or check the spelling."
            )
        return cls(table, [table.position(s.name) if s.name in known else -1 for s in specs])

    def column(self, spec: ColumnSpec) -> Column:
        """One column with its conversions; without any value if the table lacks it."""
        position = self.positions[spec.position]
        if position < 0:
            import pyarrow as pa

            return Column(spec.name, pa.nulls(self.table.n_rows))
        return self.table.column(self.table.names[position])

    def number_blocks(self, specs: Sequence[ColumnSpec]) -> Iterator[NumberBlock]:
        """Number columns a few at a time as float64; those stored otherwise one by one, last.

        Yields some columns, their values in all rows, and the strings that are no numbers.
        """
        is_number = [*self.table.is_number, False]  # the last is that of position -1
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


def warn_about_names(table: Table, has_names: bool) -> None:
    """Warn where only one of a table and the fit has names."""
    # The wording is scikit-learn's, by which users and its own tools know the problem.
    if has_names and not table.has_names:
        warn(
            "X does not have valid feature names, but TabNSMRegressor was fitted with feature "
            "names. Columns are taken by their position; pass a table with these names to "
            "have them matched."
        )
    elif table.has_names and not has_names:
        warn(
            "X has feature names, but TabNSMRegressor was fitted without feature names. "
            "Columns are taken by their position; fit on a table with names to have them "
            "matched."
        )
