"""Finding what each column is, on the fit rows, by the paper's rule or as the user says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm.preprocessing.categorical import encode_categories, find_vocabulary
from tabnsm.preprocessing.column import Column, Factor, parse_floats
from tabnsm.preprocessing.config import EncoderConfig
from tabnsm.preprocessing.datetime import DATE_PARTS, date_parts, find_date_format, read_dates
from tabnsm.preprocessing.numeric import Standardizer, is_missing
from tabnsm.preprocessing.schema import ColumnSpec

Rows = NDArray[np.int64] | None

# The paper: string columns with fewer distinct values than this are categories.
MIN_TEXT_VALUES = 10
# NOTE[DIFF]: names that come back row after row say more by which they are than by what they
# mean, and one embedded category takes the place of 384 numbers.
MIN_REPEATS = 10
_EMPTY = "dropped: empty in the training rows"
_CONSTANT = "dropped: constant in the training rows"


@dataclass(frozen=True)
class FittedColumn:
    """A column's facts, beside the statistics of the features that are standardised."""

    spec: ColumnSpec
    standardizer: Standardizer | None = None


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
        if column.storage in ("string", "categorical"):
            values = _used_values(column.to_factor(), self.rows)
            _, valid = parse_floats(values)
            if not valid.all():
                raise _impossible(column.name, "numeric", "numbers", values, valid)
        return self.fit_number(column.name, position, column.to_float())

    def _fit_asked_date(self, column: Column, position: int) -> FittedColumn:
        if column.storage == "number" and column.to_factor().values:
            raise InvalidOptionError(
                f"column_kinds[{column.name!r}] = 'date' needs dates, got numbers. Convert them "
                "first, for example with pandas.to_datetime."
            )
        date_format = None
        if column.storage in ("string", "categorical"):
            values = _used_values(column.to_factor(), self.rows)
            date_format = find_date_format(values)
            if date_format is None and values:
                readable = np.array([find_date_format([value]) is not None for value in values])
                raise _impossible(column.name, "date", "dates of one format", values, readable)
        return self._fit_date(column, position, date_format)

    def _fit_date(self, column: Column, position: int, date_format: str | None) -> FittedColumn:
        micros, missing = read_dates(column, date_format)
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
            note=f"dates written as {date_format}" if date_format else "",
            has_indicator=bool(self.config.missing_indicators and missing.any()),
            date_format=date_format,
            date_origin=origin,
            date_parts=tuple(DATE_PARTS[part] for part in kept),
        )
        return self._settle(spec, standardizer.select(kept), len(varying) > 0)

    def _fit_strings(self, column: Column, position: int, asked: str | None) -> FittedColumn:
        factor = column.to_factor()
        values = _used_values(factor, self.rows)
        if asked is None and column.storage == "string":
            if values and _all_numbers(values):
                return self.fit_number(column.name, position, column.to_float())
            date_format = find_date_format(values)
            if date_format is not None and self.config.date_encoding == "calendar":
                return self._fit_date(column, position, date_format)
        *counts, n_missing = factor.counts(self.rows).tolist()
        repeats = sum(counts) >= MIN_REPEATS * len(values)
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


def _used_values(factor: Factor, rows: Rows) -> list[str]:
    counts = factor.counts(rows)[:-1]
    return [factor.values[position] for position in np.flatnonzero(counts)]


def _all_numbers(values: list[str]) -> bool:
    # Words are told from numbers by the first strings, without reading the rest.
    return bool(parse_floats(values[:20])[1].all() and parse_floats(values)[1].all())


def _impossible(
    name: str, kind: str, what: str, values: list[str], valid: NDArray[np.bool_]
) -> InvalidOptionError:
    bad = [value for value, is_valid in zip(values, valid, strict=True) if not is_valid] or values
    examples = ", ".join(repr(value) for value in bad[:3])
    return InvalidOptionError(
        f"column_kinds[{name!r}] = {kind!r} needs {what}, got values such as {examples}. "
        "Leave the column out of column_kinds, or convert it first."
    )
