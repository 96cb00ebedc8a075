"""Number columns: standardised, with an indicator of missing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.fitting import (
    ColumnToFit,
    FitScope,
    FittedColumn,
    describe_unreadable,
    drop_uninformative,
    join_notes,
)
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.large import count_distinct, row_slices
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer, is_missing
from tabnsm.tables.number_format import PLAIN, NumberFormat, find_number_format
from tabnsm.tables.reading import read_numbers


class NumberColumns(ColumnGroup):
    """Columns of numbers, stored as such or written as strings.

    Examples
    --------
    >>> spec = ColumnSpec(0, "age", "numeric", has_indicator=True)
    >>> NumberColumns.describe([spec], {})
    [(2, '')]
    """

    kind = "numeric"
    has_indicators = True
    checked_as = "numbers"

    @classmethod
    def fit_blocks(cls, table: MatchedTable, scope: FitScope) -> Iterator[FittedColumn]:
        """Fit the columns that are stored as plain numbers, unless another kind is asked for."""
        kinds = scope.config.column_kinds
        plain = [
            ColumnSpec(position, name, cls.kind)
            for position, (name, is_number) in enumerate(
                zip(table.table.names, table.table.is_number, strict=True)
            )
            if is_number and kinds.get(name, cls.kind) == cls.kind
        ]
        for block, matrix, _ in table.number_blocks(plain):
            for k, spec in enumerate(block):
                yield _fit_values(spec.name, spec.position, matrix[:, k], scope)

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        """Fit a column of numbers, or of strings that are numbers; see the base class."""
        storage = source.column.storage
        if source.is_asked:
            return _fit_column(source, _asked_format(source) if source.is_written else PLAIN)
        if storage == "number":
            return _fit_values(source.name, source.position, source.column.to_float(), source.scope)
        number_format = find_number_format(*source.used) if storage == "string" else None
        return None if number_format is None else _fit_column(source, number_format)

    def features(self) -> list[Feature]:
        """One feature per column, but none where a column is constant."""
        return [
            Feature(spec.name, spec.position, is_derived=False)
            for spec in self.specs
            if spec.has_value
        ]

    def write(
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write values and missing indicators, a block of columns at a time."""
        clip = self.config.clip_outliers
        with_statistics = [spec.position for spec in self.specs if spec.has_value]
        row_of = {position: k for k, position in enumerate(with_statistics)}
        for block, matrix, unreadable in table.number_blocks(self.specs):
            if unreadable is not None:
                notes.reading.unreadable.append(unreadable)
            with_value = [k for k, spec in enumerate(block) if spec.has_value]
            if with_value:
                values = matrix if len(with_value) == len(block) else matrix[:, with_value]
                statistics = self.statistics.select([row_of[block[k].position] for k in with_value])
                targets = [layout.value_at[block[k].position] for k in with_value]
                counts = np.zeros(len(with_value), dtype=np.int64)
                for rows in row_slices(len(values)):
                    written = np.empty(values[rows].shape, dtype=np.float32)
                    counts += statistics.apply(values[rows], written, clip=clip)
                    _copy(written, dense[rows], targets)
                for k in np.flatnonzero(counts):
                    notes.far[block[with_value[k]].name] = int(counts[k])
            with_indicator = [k for k, spec in enumerate(block) if spec.has_indicator]
            if with_indicator:
                targets = [layout.indicator_at[block[k].position] for k in with_indicator]
                dense[:, targets] = is_missing(matrix[:, with_indicator], clip=clip)

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """A value and an indicator, as far as a column has them."""
        return [(int(spec.has_value) + int(spec.has_indicator), spec.note) for spec in specs]


def _copy(written: NDArray[np.float32], dense: NDArray[np.float32], targets: Sequence[int]) -> None:
    first, last = targets[0], targets[-1]
    # A slice is many times faster than a list of columns.
    if last - first == len(targets) - 1:
        dense[:, first : last + 1] = written
    else:
        dense[:, targets] = written


def _asked_format(source: ColumnToFit) -> NumberFormat:
    number_format = find_number_format(*source.used, forced=True)
    if number_format is None and source.used[0]:
        raise source.refuse(NumberColumns.kind, "numbers")
    return number_format or PLAIN


def _fit_column(source: ColumnToFit, number_format: NumberFormat) -> FittedColumn:
    """Fit a column that is read as numbers: strings, or dates if the user asked for that."""
    column = source.column
    is_dates = column.storage == "temporal"
    values, unreadable = read_numbers(
        column, number_format, from_dates=is_dates, count_markers=True
    )
    fitted = _fit_values(source.name, source.position, values, source.scope)
    written = "" if is_dates else number_format.describe(column.to_factor().values)
    note = join_notes(written, describe_unreadable(unreadable), fitted.spec.note)
    spec = replace(fitted.spec, number_format=number_format, from_dates=is_dates, note=note)
    return replace(fitted, spec=spec, unreadable=unreadable)


def _fit_values(
    name: str, position: int, values: NDArray[np.float64], scope: FitScope
) -> FittedColumn:
    fit_values = scope.take(values)
    missing = is_missing(fit_values, clip=scope.config.clip_outliers)
    standardizer = Standardizer.fit(fit_values[:, None])
    spec = ColumnSpec(
        position,
        name,
        NumberColumns.kind,
        missing=float(missing.mean()),
        distinct=count_distinct(fit_values[np.isfinite(fit_values)]),
        has_indicator=bool(scope.config.missing_indicators and missing.any()),
    )
    return drop_uninformative(spec, standardizer, scope, varies=bool(standardizer.varies[0]))
