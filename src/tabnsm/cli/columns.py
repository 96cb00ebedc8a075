"""Columns of a file that are not features: weights, groups, times."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm.tables.column import Column
from tabnsm.tables.date_format import find_date_format
from tabnsm.tables.reading import ReadingNotes, numbers_or_missing, read_dates


def group_values(table: Any, name: str) -> np.ndarray:
    """Group of each row, None where missing."""
    return np.array(table.column(name).to_pylist(), dtype=object)


def time_values(table: Any, name: str) -> np.ndarray:
    """Time of each row as a number, from numbers or dates, also written as strings."""
    column = Column(name, table.column(name))
    date_format = None
    if column.storage in ("string", "categorical"):
        date_format = find_date_format(*column.to_factor().used())
    if date_format is None and column.storage != "temporal":
        return number_values(table, name, "--time", "numbers or dates")
    micros, missing, unreadable = read_dates(column, date_format.name if date_format else None)
    if unreadable is not None:
        raise InvalidDataError(
            f"--time must name a column of numbers or dates, but {name!r} has "
            f"{unreadable.examples[0]!r}."
        )
    if date_format is not None and date_format.ambiguous:
        ReadingNotes(ambiguous={name: date_format}).warn(fitting=True)
    return np.where(missing, np.nan, micros.astype(np.float64))


def number_values(table: Any, name: str, option: str, wanted: str = "numbers") -> np.ndarray:
    """A column as numbers, also where they are written as strings; NaN where missing.

    `option`, which named it, and what it `wanted` are for the message.
    """
    column = Column(name, table.column(name))
    if column.storage == "temporal":
        raise InvalidDataError(f"{option} must name a column of {wanted}, but {name!r} has dates.")
    values, others = numbers_or_missing(column)
    if others:
        raise InvalidDataError(
            f"{option} must name a column of {wanted}, but {name!r} has {others[0]!r}."
        )
    return values
