"""Date columns: calendar parts and elapsed time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.fitting import (
    ColumnToFit,
    FittedColumn,
    describe_unreadable,
    drop_uninformative,
    join_notes,
)
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.large import LARGE_ROWS, count_distinct, row_slices
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.errors import InvalidOptionError
from tabnsm.tables.date_format import ANY_DATE, DateFormat, find_ambiguous, find_date_format
from tabnsm.tables.reading import read_dates

Micros = NDArray[np.int64]

DATE_PARTS = ("days", "year", "month", "day", "weekday", "day_of_year", "hour", "minute")
_DAY = 86_400_000_000


def date_parts(micros: Micros, missing: NDArray[np.bool_], origin: int) -> NDArray[np.float64]:
    """Elapsed days and calendar parts, NaN where a date is missing.

    From microseconds since 1970, as are those of `origin`, from which days are counted, to one
    column per entry of `DATE_PARTS`.

    Examples
    --------
    >>> micros = np.array(["2024-03-01T12:30"], dtype="datetime64[us]").astype(np.int64)
    >>> date_parts(micros, np.array([False]), 0).tolist()
    [[19783.520833333332, 2024.0, 3.0, 1.0, 4.0, 61.0, 12.0, 30.0]]
    """
    parts = np.stack([_date_part(micros, part, origin) for part in DATE_PARTS], axis=1)
    parts[missing] = np.nan
    return parts


def _date_part(micros: Micros, part: str, origin: int) -> NDArray[Any]:
    """One of the parts, as numbers."""
    if part == "days":
        return np.asarray((micros - origin) / _DAY)
    days, in_day = np.divmod(micros, _DAY)
    if part == "hour":
        return np.asarray(in_day // 3_600_000_000)
    if part == "minute":
        return np.asarray(in_day // 60_000_000 % 60)
    if part == "weekday":
        return np.asarray((days + 3) % 7)  # 1970-01-01 was a Thursday; Monday is 0
    date = days.astype("datetime64[D]")
    if part in ("month", "day"):
        month = date.astype("datetime64[M]")
        if part == "month":
            return month.astype(np.int64) % 12 + 1.0
        return np.asarray((date - month).astype(np.int64) + 1.0)
    year = date.astype("datetime64[Y]")
    if part == "year":
        return year.astype(np.int64) + 1970.0
    return np.asarray((date - year).astype(np.int64) + 1.0)


class DateColumns(ColumnGroup):
    """Columns of dates, stored as such or written as strings.

    Examples
    --------
    >>> spec = ColumnSpec(0, "day", "date", date_parts=("days", "month"))
    >>> DateColumns.describe([spec], {})
    [(2, '')]
    """

    kind = "date"
    has_indicators = True

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        """Fit a column of dates, or of strings that are dates; see the base class."""
        if source.is_asked:
            return _fit_dates(source, _asked_format(source))
        if source.scope.config.date_encoding != "calendar":
            return None
        if source.column.storage == "temporal":
            return _fit_dates(source, None)
        date_format = find_date_format(*source.used) if source.column.storage == "string" else None
        return None if date_format is None else _fit_dates(source, date_format)

    def features(self) -> list[Feature]:
        """One feature per calendar part that varies."""
        return [
            Feature(f"{spec.name}_{part}", spec.position)
            for spec in self.specs
            for part in spec.date_parts
        ]

    def write(
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write calendar parts and missing indicators."""
        first = 0
        for spec in self.specs:
            micros, missing = _read(table, spec, notes)
            n_parts = len(spec.date_parts)
            if n_parts:
                kept = [DATE_PARTS.index(part) for part in spec.date_parts]
                statistics = self.statistics.select(slice(first, first + n_parts))
                start = layout.value_at[spec.position]
                counts = np.zeros(n_parts, dtype=np.int64)
                for rows in row_slices(len(micros)):
                    parts = date_parts(micros[rows], missing[rows], spec.date_origin)[:, kept]
                    counts += statistics.apply(
                        parts,
                        dense[rows, start : start + n_parts],
                        clip=self.config.clip_outliers,
                    )
                if counts.any():
                    notes.far[spec.name] = int(counts.max())
                first += n_parts
            if spec.has_indicator:
                dense[:, layout.indicator_at[spec.position]] = missing

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """The parts of a date, and its indicator."""
        return [(len(spec.date_parts) + int(spec.has_indicator), spec.note) for spec in specs]


def _read(
    table: MatchedTable, spec: ColumnSpec, notes: RowNotes
) -> tuple[Micros, NDArray[np.bool_]]:
    column = table.column(spec)
    micros, missing, unreadable = read_dates(column, spec.date_format)
    if unreadable is not None:
        notes.reading.unreadable.append(unreadable)
    if spec.date_format is None and column.storage in ("string", "categorical"):
        ambiguous = find_ambiguous(column.to_factor().values)
        if ambiguous:
            notes.reading.ambiguous[spec.name] = DateFormat(ANY_DATE, ambiguous)
    return micros, missing


def _asked_format(source: ColumnToFit) -> DateFormat | None:
    if source.column.storage == "number" and source.column.to_factor().values:
        raise InvalidOptionError(
            f"column_kinds[{source.name!r}] = 'date' needs dates, got numbers. Convert them "
            "first, for example with pandas.to_datetime."
        )
    if not source.is_written:
        return None
    date_format = find_date_format(*source.used, forced=True)
    if date_format is None and source.used[0]:
        raise source.refuse(DateColumns.kind, "dates")
    return date_format


def _fit_parts(micros: Micros, missing: NDArray[np.bool_], origin: int) -> Standardizer:
    """Statistics of all parts; of a large table one part at a time, which needs less memory."""
    if len(micros) <= LARGE_ROWS:
        return Standardizer.fit(date_parts(micros, missing, origin))
    fitted = []
    for name in DATE_PARTS:
        part = np.empty((len(micros), 1))
        for rows in row_slices(len(micros)):
            part[rows, 0] = _date_part(micros[rows], name, origin)
        part[missing] = np.nan
        fitted.append(Standardizer.fit(part))
    return Standardizer.stack(fitted)


def _fit_dates(source: ColumnToFit, date_format: DateFormat | None) -> FittedColumn:
    config, rows = source.scope.config, source.scope.rows
    name = date_format.name if date_format else None
    micros, missing, unreadable = read_dates(source.column, name, count_markers=True)
    if rows is not None:
        micros, missing = micros[rows], missing[rows]
    present = micros[~missing]
    origin = int(present.min()) if len(present) else 0
    standardizer = _fit_parts(micros, missing, origin)
    varying = np.flatnonzero(standardizer.varies)
    kept = varying if len(varying) else np.array([0])
    written = f"dates written as {name}" if name else ""
    spec = ColumnSpec(
        source.position,
        source.name,
        DateColumns.kind,
        missing=float(missing.mean()),
        distinct=count_distinct(present),
        note=join_notes(written, describe_unreadable(unreadable)),
        has_indicator=bool(config.missing_indicators and missing.any()),
        date_format=name,
        date_origin=origin,
        date_parts=tuple(DATE_PARTS[part] for part in kept),
    )
    fitted = drop_uninformative(
        spec, standardizer.select(kept), source.scope, varies=len(varying) > 0
    )
    return replace(fitted, unreadable=unreadable, date_format=date_format)
