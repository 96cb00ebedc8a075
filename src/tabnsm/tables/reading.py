"""Columns as numbers or dates, with an account of the strings that are neither."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError, warn
from tabnsm.tables.column import Column, Factor
from tabnsm.tables.date_format import ANY_DATE, DateFormat, parse_dates
from tabnsm.tables.markers import is_marker
from tabnsm.tables.number_format import (
    PLAIN,
    NumberFormat,
    find_number_format,
    parse_numbers,
)
from tabnsm.tables.stored import choose

_MAX_EXAMPLES = 3
_MAX_COLUMNS = 5


@dataclass(frozen=True)
class Unreadable:
    """Strings of one column that count as missing."""

    name: str
    expected: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        examples = ", ".join(repr(textwrap.shorten(text, 40)) for text in self.examples)
        return f"{self.name!r} ({self.count} not {self.expected}, such as {examples})"


def read_numbers(
    column: Column, number_format: NumberFormat, *, from_dates: bool, count_markers: bool = False
) -> tuple[NDArray[np.float64], Unreadable | None]:
    """A column as numbers, NaN where missing.

    Also returns the strings that are no numbers; with `count_markers`, "?" and "unknown" are among
    them. Raises `InvalidDataError` if the column holds dates, unless they are read as numbers as in
    the fit rows, or several strings of which none is a number.
    """
    if column.storage not in ("string", "categorical"):
        values = column.to_float()
        if column.storage == "temporal" and not from_dates and not np.isnan(values).all():
            raise _no_numbers(column.name, column.to_factor().values[0], "dates")
        return values, None
    factor = column.to_factor()
    parsed, valid, _ = column.parse(parse_numbers, number_format)
    values = np.append(parsed, np.nan)[factor.codes]
    if valid.all():
        return values, None
    others = _rejected(factor, valid | is_marker(factor.values))
    if others and not valid[factor.codes[factor.codes >= 0]].any():
        are_dates = parse_dates(others, ANY_DATE)[1].all()
        if are_dates or int((factor.codes >= 0).sum()) > 1:
            raise _no_numbers(column.name, others[0], "dates" if are_dates else "text")
    return values, _unreadable(column.name, "numbers", factor, valid, count_markers)


def numbers_or_missing(column: Column) -> tuple[NDArray[np.float64], Sequence[str]]:
    """A column that must hold numbers, such as a target, with the format that reads most of it.

    Also returns the strings that are neither numbers nor markers, the most frequent first.
    """
    if column.storage not in ("string", "categorical"):
        return column.to_float(), []
    factor = column.to_factor()
    number_format = find_number_format(*factor.used(), forced=True) or PLAIN
    parsed, valid, _ = column.parse(parse_numbers, number_format)
    others = _rejected(factor, valid | is_marker(factor.values))
    return np.append(parsed, np.nan)[factor.codes], others


def read_dates(
    column: Column, date_format: str | None, *, count_markers: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Unreadable | None]:
    """A date column as microseconds since 1970, beside a mask of the missing ones.

    Strings that are no dates count as missing; a column without any value may be of any type.
    Without a format all are tried. Also returns the strings that are no dates; with
    `count_markers`, "?" and "unknown" are among them. Raises `InvalidDataError` if the column holds
    numbers.
    """
    if column.storage == "temporal":
        return *column.to_microseconds(), None
    factor = column.to_factor()
    if column.storage == "number" and factor.values:
        raise InvalidDataError(
            f"Column {column.name!r} must hold dates, as it did when the model was fitted, got "
            "numbers. Convert them, for example with pandas.to_datetime."
        )
    parsed, valid = column.parse(parse_dates, date_format or ANY_DATE)
    micros = np.append(parsed, 0)[factor.codes]
    missing = np.append(~valid, True)[factor.codes]
    expected = f"dates written as {date_format}" if date_format else "dates"
    return micros, missing, _unreadable(column.name, expected, factor, valid, count_markers)


@dataclass
class ReadingNotes:
    """Warnings about strings that were read as numbers or dates.

    Columns with strings that count as missing, and columns of dates whose rows do not tell the
    order of day and month.
    """

    unreadable: list[Unreadable] = field(default_factory=list)
    ambiguous: dict[str, DateFormat] = field(default_factory=dict)

    def warn(self, *, fitting: bool) -> None:
        """Warn of all columns at once, if there is anything to report.

        `fitting`: the columns were just understood, so that the user can overrule that.
        """
        if self.unreadable:
            self._warn_unreadable(fitting)
        if self.ambiguous:
            self._warn_ambiguous()

    def _warn_unreadable(self, fitting: bool) -> None:
        found = self.unreadable
        name = found[0].name
        remedy = (
            f"If that is wrong, choose another kind: column_kinds={{{name!r}: 'category'}}."
            if fitting
            else "Write them as in the training rows to have them used."
        )
        warn(
            f"{sum(column.count for column in found)} value(s) could not be read and count as "
            f"missing, in {_listed([str(column) for column in found])}. {remedy}"
        )

    def _warn_ambiguous(self) -> None:
        orders = [
            f"{column!r} ({form.ambiguous!r} is read with the "
            f"{'day' if form.is_day_first else 'month'} first)"
            for column, form in self.ambiguous.items()
        ]
        name, form = next(iter(self.ambiguous.items()))
        warn(
            f"The order of day and month is not clear from the dates in {_listed(orders)}. If "
            "that is wrong, convert the column before fitting and before predicting: "
            f"pandas.to_datetime(X[{name!r}], dayfirst={not form.is_day_first})."
        )


def _listed(columns: Sequence[str]) -> str:
    more = len(columns) - _MAX_COLUMNS
    return ", ".join(columns[:_MAX_COLUMNS]) + (f" and {more} more column(s)" if more > 0 else "")


def _no_numbers(name: str, example: str, what: str) -> InvalidDataError:
    remedy = (
        "Give the column that the model was fitted with, or convert the dates to what it held."
        if what == "dates"
        else "Replace such values by a number, leave them empty, or fit with "
        f"column_kinds={{{name!r}: 'category'}}."
    )
    return InvalidDataError(
        f"Column {name!r} must hold numbers, as it does in the training rows, got {what} such as "
        f"{example!r}. {remedy}"
    )


def _rejected(factor: Factor, valid: NDArray[np.bool_]) -> Sequence[str]:
    """Strings that could not be read, those that occur most often first."""
    counts = np.where(valid, 0, factor.counts(None)[:-1])
    order = np.argsort(-counts, kind="stable")
    return choose(factor.values, order[: np.count_nonzero(counts)])


def _unreadable(
    name: str, expected: str, factor: Factor, valid: NDArray[np.bool_], count_markers: bool
) -> Unreadable | None:
    if valid.all():
        return None
    ignored = valid if count_markers else valid | is_marker(factor.values)
    examples = _rejected(factor, ignored)
    if not examples:
        return None
    count = int((~ignored[factor.codes[factor.codes >= 0]]).sum())
    return Unreadable(name, expected, count, tuple(examples[:_MAX_EXAMPLES]))
