"""What every kind of column needs to be fitted, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.tables.column import Column
from tabnsm.tables.date_format import DateFormat
from tabnsm.tables.reading import ReadingNotes, Unreadable

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig

EMPTY = "dropped: empty in the training rows"
CONSTANT = "dropped: constant in the training rows"


@dataclass(frozen=True)
class FitScope:
    """Options and fit rows (None for all) of a fit.

    `keep_constant` keeps columns that do not vary, as features that are zero; for tables with no
    other.
    """

    config: EncoderConfig
    rows: NDArray[np.int64] | None
    keep_constant: bool = False

    def take(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The fit rows of an array."""
        return values if self.rows is None else values[self.rows]


class ColumnToFit:
    """A column of the fit, with what several kinds look at to recognise it."""

    def __init__(self, column: Column, position: int, scope: FitScope) -> None:
        self.column = column
        self.position = position
        self.scope = scope

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @property
    def is_asked(self) -> bool:
        """Whether the user chose the kind of this column."""
        return self.name in self.scope.config.column_kinds

    @property
    def is_written(self) -> bool:
        """Whether its values are strings, categories included."""
        return self.column.storage in ("string", "categorical")

    @cached_property
    def used(self) -> tuple[Sequence[str], NDArray[np.int64]]:
        """Distinct strings of the fit rows, and how often each occurs."""
        return self.column.to_factor().used(self.scope.rows)

    def refuse(self, kind: str, needed: str) -> InvalidOptionError:
        """The error for a kind that the user asked for and that the values cannot be."""
        examples = ", ".join(repr(value) for value in self.used[0][:3])
        return InvalidOptionError(
            f"column_kinds[{self.name!r}] = {kind!r} needs {needed}, got values such as "
            f"{examples}. Leave the column out of column_kinds, or convert it first."
        )


@dataclass(frozen=True)
class FittedColumn:
    """A column's facts, beside the statistics of the features that are standardised.

    `unreadable` are strings of all rows that count as missing.
    """

    spec: ColumnSpec
    standardizer: Standardizer | None = None
    unreadable: Unreadable | None = None
    date_format: DateFormat | None = None


def drop_uninformative(
    spec: ColumnSpec, standardizer: Standardizer, scope: FitScope, *, varies: bool
) -> FittedColumn:
    """Drop what carries nothing, unless the user or an otherwise empty table needs it.

    What is left is the column, its missing indicator alone, or a dropped column.
    """
    if varies:
        return FittedColumn(spec, standardizer)
    is_asked = spec.name in scope.config.column_kinds
    if spec.distinct == 0 and not is_asked:
        return FittedColumn(replace(spec, kind="drop", has_indicator=False, note=EMPTY))
    if spec.has_indicator:
        note = "constant where present: only its missing indicator is used"
        return FittedColumn(replace(spec, has_value=False, date_parts=(), note=note))
    if scope.keep_constant or is_asked:
        return FittedColumn(replace(spec, note="constant in the training rows"), standardizer)
    return FittedColumn(replace(spec, kind="drop", has_indicator=False, note=CONSTANT))


def join_notes(*notes: str) -> str:
    """Several notes as one.

    Examples
    --------
    >>> join_notes("dates written as m/d/Y", "", "1 unreadable value(s) are missing")
    'dates written as m/d/Y; 1 unreadable value(s) are missing'
    """
    return "; ".join(note for note in notes if note)


def describe_unreadable(unreadable: Unreadable | None) -> str:
    """A note on strings that count as missing."""
    return "" if unreadable is None else f"{unreadable.count} unreadable value(s) are missing"


def warn_reading(fitted: Sequence[FittedColumn]) -> None:
    """Warn of values that could not be read, and of dates whose order no row tells."""
    used = [column for column in fitted if column.spec.kind != "drop"]
    notes = ReadingNotes(
        [column.unreadable for column in used if column.unreadable is not None],
        {
            column.spec.name: column.date_format
            for column in used
            if column.date_format is not None and column.date_format.ambiguous
        },
    )
    notes.warn(fitting=True)


def row_numbers(rows: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Numbers of the fit rows, given as such or as a mask; None, for all, stays None."""
    if rows is None:
        return None
    chosen = np.asarray(rows)
    if chosen.dtype == bool:
        chosen = np.flatnonzero(chosen)
    if len(chosen) == 0:
        raise InvalidDataError(f"fit_rows must hold at least 1 of the {n_rows} rows, got none.")
    return chosen.astype(np.int64, copy=False)
