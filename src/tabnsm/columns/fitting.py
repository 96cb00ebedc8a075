"""Finding what each column is, on the fit rows, by the paper's rule or as the user says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.category import encode_categories, find_vocabulary
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.date import DATE_PARTS, date_parts
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer, is_missing
from tabnsm.errors import InvalidOptionError
from tabnsm.tables.column import Column, Factor
from tabnsm.tables.date_format import DateFormat, find_date_format
from tabnsm.tables.number_format import PLAIN, NumberFormat, are_codes, find_number_format
from tabnsm.tables.reading import Unreadable, read_dates, read_numbers

Rows = NDArray[np.int64] | None

# The paper: string columns with fewer distinct values than this are categories.
MIN_TEXT_VALUES = 10
# NOTE[DIFF]: names that come back row after row say more by which they are than by what they
# mean, and one embedded category takes the place of 384 numbers.
MIN_REPEATS = 10
_EMPTY = "dropped: empty in the training rows"
_CODES = "codes, because of leading zeros"
_CONSTANT = "dropped: constant in the training rows"


@dataclass(frozen=True)
class FittedColumn:
    """A column's facts, beside the statistics of the features that are standardised.

    Parameters
    ----------
    spec : ColumnSpec
        The facts.
    standardizer : Standardizer or None
        Statistics.
    unreadable : Unreadable or None
        Strings of all rows that count as missing.
    date_format : DateFormat or None
        Format of dates written as strings.
    """

    spec: ColumnSpec
    standardizer: Standardizer | None = None
    unreadable: Unreadable | None = None
    date_format: DateFormat | None = None


@dataclass(frozen=True)
class ColumnFitter:
    """Find the kind of a column and fit what that kind needs.

    Parameters
    ----------
    config : EncoderConfig
        Options.
    rows : ndarray of int64 or None
        Fit rows; None for all.
    keep_constant : bool, default=False
        Keep columns that do not vary, as features that are zero; for tables with no other.
    """

    config: EncoderConfig
    rows: Rows
    keep_constant: bool = False

    def fit(self, column: Column, position: int) -> FittedColumn:
        """Fit a column that is not one of a block of numbers.

        Parameters
        ----------
        column : Column
            The column.
        position : int
            Its position.

        Returns
        -------
        FittedColumn
            Facts and statistics.
        """
        asked = self.config.column_kinds.get(column.name)
        if asked == "drop":
            spec = ColumnSpec(position, column.name, "drop", note="dropped: as asked")
            return FittedColumn(spec)
        if asked == "numeric":
            return self._fit_asked_number(column, position)
        if asked == "date":
            return self._fit_asked_date(column, position)
        if asked is None and column.storage == "number":
            return self.fit_number(column.name, position, column.to_float())
        is_date = column.storage == "temporal" and self.config.date_encoding == "calendar"
        if asked is None and is_date:
            return self._fit_date(column, position, None)
        return self._fit_strings(column, position, asked)

    def fit_number(self, name: str, position: int, values: NDArray[np.float64]) -> FittedColumn:
        """Fit a column of numbers.

        Parameters
        ----------
        name : str
            Name of the column.
        position : int
            Its position.
        values : ndarray of float64
            Its values in all rows.

        Returns
        -------
        FittedColumn
            Facts and statistics.
        """
        fit_values = values if self.rows is None else values[self.rows]
        missing = is_missing(fit_values, clip=self.config.clip_outliers)
        standardizer = Standardizer.fit(fit_values[:, None])
        finite = fit_values[np.isfinite(fit_values)]
        has_indicator = bool(self.config.missing_indicators and missing.any())
        spec = ColumnSpec(
            position,
            name,
            "numeric",
            missing=float(missing.mean()),
            distinct=_count_distinct(finite),
            has_indicator=has_indicator,
        )
        return self._settle(spec, standardizer, bool(standardizer.varies[0]))

    def _settle(self, spec: ColumnSpec, standardizer: Standardizer, varies: bool) -> FittedColumn:
        """Drop what carries nothing, unless the user or an otherwise empty table needs it."""
        wanted = self.keep_constant or spec.name in self.config.column_kinds
        if varies:
            return FittedColumn(spec, standardizer)
        if spec.distinct == 0 and spec.name not in self.config.column_kinds:
            return FittedColumn(replace(spec, kind="drop", has_indicator=False, note=_EMPTY))
        if spec.has_indicator:
            note = "constant where present: only its missing indicator is used"
            return FittedColumn(replace(spec, has_value=False, date_parts=(), note=note))
        if wanted:
            return FittedColumn(replace(spec, note="constant in the training rows"), standardizer)
        return FittedColumn(replace(spec, kind="drop", has_indicator=False, note=_CONSTANT))

    def _fit_asked_number(self, column: Column, position: int) -> FittedColumn:
        number_format = PLAIN
        if column.storage in ("string", "categorical"):
            values, counts = column.to_factor().used(self.rows)
            found = find_number_format(values, counts, forced=True)
            if found is None and values:
                raise _impossible(column.name, "numeric", "numbers", values)
            number_format = found or PLAIN
        return self._fit_read_number(column, position, number_format)

    def _fit_read_number(
        self, column: Column, position: int, number_format: NumberFormat
    ) -> FittedColumn:
        """Fit a column that is read as numbers: strings, or dates if the user asked for that."""
        is_dates = column.storage == "temporal"
        values, unreadable = read_numbers(
            column, number_format, from_dates=is_dates, count_markers=True
        )
        fitted = self.fit_number(column.name, position, values)
        written = "" if is_dates else number_format.describe(column.to_factor().values)
        note = _joined(written, _note_on(unreadable), fitted.spec.note)
        spec = replace(fitted.spec, number_format=number_format, from_dates=is_dates, note=note)
        return replace(fitted, spec=spec, unreadable=unreadable)

    def _fit_asked_date(self, column: Column, position: int) -> FittedColumn:
        if column.storage == "number" and column.to_factor().values:
            raise InvalidOptionError(
                f"column_kinds[{column.name!r}] = 'date' needs dates, got numbers. Convert them "
                "first, for example with pandas.to_datetime."
            )
        date_format = None
        if column.storage in ("string", "categorical"):
            values, counts = column.to_factor().used(self.rows)
            date_format = find_date_format(values, counts, forced=True)
            if date_format is None and values:
                raise _impossible(column.name, "date", "dates", values)
        return self._fit_date(column, position, date_format)

    def _fit_date(
        self, column: Column, position: int, date_format: DateFormat | None
    ) -> FittedColumn:
        name = date_format.name if date_format else None
        micros, missing, unreadable = read_dates(column, name, count_markers=True)
        if self.rows is not None:
            micros, missing = micros[self.rows], missing[self.rows]
        present = micros[~missing]
        origin = int(present.min()) if len(present) else 0
        standardizer = Standardizer.fit(date_parts(micros, missing, origin))
        varying = np.flatnonzero(standardizer.varies)
        kept = varying if len(varying) else np.array([0])
        spec = ColumnSpec(
            position,
            column.name,
            "date",
            missing=float(missing.mean()),
            distinct=len(np.unique(present)),
            note=_joined(f"dates written as {name}" if name else "", _note_on(unreadable)),
            has_indicator=bool(self.config.missing_indicators and missing.any()),
            date_format=name,
            date_origin=origin,
            date_parts=tuple(DATE_PARTS[part] for part in kept),
        )
        fitted = self._settle(spec, standardizer.select(kept), len(varying) > 0)
        return replace(fitted, unreadable=unreadable, date_format=date_format)

    def _fit_strings(self, column: Column, position: int, asked: str | None) -> FittedColumn:
        if asked is None and column.storage == "string":
            values, counts = column.to_factor().used(self.rows)
            number_format = find_number_format(values, counts)
            if number_format is not None:
                return self._fit_read_number(column, position, number_format)
            if self.config.date_encoding == "calendar":
                date_format = find_date_format(values, counts)
                if date_format is not None:
                    return self._fit_date(column, position, date_format)
        return self._fit_words(column, position, asked)

    def _fit_words(self, column: Column, position: int, asked: str | None) -> FittedColumn:
        """Fit a category or free text."""
        factor = column.to_factor()
        values, counts = factor.used(self.rows)
        n_missing = int(factor.counts(self.rows)[-1])
        repeats = counts.sum() >= MIN_REPEATS * len(values)
        is_category = (
            column.storage == "categorical"
            or len(values) < MIN_TEXT_VALUES
            or (repeats and self.config.repeated_strings == "category")
        )
        kind = asked or ("category" if is_category else "text")
        spec = ColumnSpec(
            position,
            column.name,
            kind,
            missing=n_missing / len(factor.codes if self.rows is None else self.rows),
            distinct=len(values),
            note=_CODES if asked is None and are_codes(values) else "",
            missing_code=kind == "category" and n_missing > 0,
            vocabulary=find_vocabulary(factor, self.rows) if kind == "category" else (),
        )
        if asked is None and not values:
            return FittedColumn(replace(spec, kind="drop", missing_code=False, note=_EMPTY))
        constant = len(values) == 1 and n_missing == 0
        if asked is None and constant and not self.keep_constant:
            return FittedColumn(replace(spec, kind="drop", vocabulary=(), note=_CONSTANT))
        if kind == "text" or self.config.category_encoding == "embedding":
            return FittedColumn(spec)
        codes = standard_codes(factor, spec)
        return FittedColumn(
            spec, Standardizer.fit((codes if self.rows is None else codes[self.rows])[:, None])
        )


def standard_codes(factor: Factor, spec: ColumnSpec) -> NDArray[np.float64]:
    """Category codes as numbers, NaN for unseen values.

    Parameters
    ----------
    factor : Factor
        The column.
    spec : ColumnSpec
        Its vocabulary.

    Returns
    -------
    ndarray of float64
        Codes from 1, or NaN.
    """
    codes = encode_categories(factor, spec.vocabulary, missing_code=spec.missing_code)
    return np.where(codes == 0, np.nan, codes.astype(np.float64))


def _count_distinct(values: NDArray[np.float64]) -> int:
    # Sorting is many times faster than hashing here: numpy sorts with SIMD.
    ordered = np.sort(values)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + min(len(ordered), 1)


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)


def _note_on(unreadable: Unreadable | None) -> str:
    return "" if unreadable is None else f"{unreadable.count} unreadable value(s) are missing"


def _impossible(name: str, kind: str, what: str, values: list[str]) -> InvalidOptionError:
    examples = ", ".join(repr(value) for value in values[:3])
    return InvalidOptionError(
        f"column_kinds[{name!r}] = {kind!r} needs {what}, got values such as {examples}. "
        "Leave the column out of column_kinds, or convert it first."
    )
