"""Columns of a dataset by name: the target, weights, groups and times of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table
from tabnsm.tables.column import Column
from tabnsm.tables.date_format import find_date_format
from tabnsm.tables.reading import numbers_or_missing, read_dates

if TYPE_CHECKING:
    from tabnsm.training.prepare import Validation


def read_named(
    X: Table, y: Any, sample_weight: Any, validation: Validation
) -> tuple[Table, Any, Any, Validation]:
    """Read the columns of a dataset that are given by name, and leave them out of the features.

    What is no name is returned as it is. The column of `validation_time` stays a feature.

    Parameters
    ----------
    X : Table
        Of a dataset.
    y : str, sequence of str, or array-like
    sample_weight : str, array-like or None
    validation : Validation

    Returns
    -------
    Table, target, weight, Validation

    Raises
    ------
    InvalidDataError
        If there is no such column, or it cannot be read as what it is named for.
    """
    features, y = read_target(X, y)
    gone: list[str] = []
    groups, times = validation.validation_groups, validation.validation_time
    if isinstance(sample_weight, str):
        gone.append(sample_weight)
        column = find_column(X, sample_weight, "sample_weight")
        sample_weight, others = numbers_or_missing(column)
        if others:
            raise InvalidDataError(
                f"sample_weight must name a column of numbers, but {column.name!r} has "
                f"{others[0]!r}."
            )
    if isinstance(groups, str):
        gone.append(groups)
        codes = find_column(X, groups, "validation_groups").to_factor().codes
        groups = np.where(codes < 0, np.nan, codes) if (codes < 0).any() else codes
    if isinstance(times, str):
        times = _times(find_column(X, times, "validation_time"))
    validation = replace(validation, validation_groups=groups, validation_time=times)
    return features.without(gone) if gone else features, y, sample_weight, validation


def read_target(X: Table, y: Any, option: str = "y") -> tuple[Table, Any]:
    """The target columns of a dataset, if `y` names them, and the table of all others."""
    names = target_names(y)
    if names is None:
        return X, y
    for name in names:
        check_column(X, name, option)
    if len(set(names)) < len(names):
        raise InvalidDataError(
            f"{option} must name different columns, got {names}. Name each once."
        )
    if isinstance(y, str):
        return X.without([y]), X.column(y)
    assert X.dataset is not None
    return X.without(names), {name: X.dataset.arrow(X.position(name), name) for name in names}


def target_names(y: Any) -> list[str] | None:
    """Names of target columns; None if `y` is values."""
    if isinstance(y, str):
        return [y]
    if isinstance(y, Sequence) and y and all(isinstance(name, str) for name in y):
        return list(y)
    return None


def check_column(table: Table, name: str, option: str) -> None:
    """Refuse a name that no column has, with a list of those that there are."""
    if name not in table.names:
        shown = ", ".join(map(repr, table.names[:10])) + (", ..." if table.n_columns > 10 else "")
        raise InvalidDataError(
            f"{option} must name a column of the dataset, got {name!r}. Its columns: {shown}."
        )


def find_column(table: Table, name: str, option: str) -> Column:
    """A column, or an error that lists those that there are."""
    check_column(table, name, option)
    return table.column(name)


def _times(column: Column) -> np.ndarray:
    """Times as numbers, from numbers or dates, also written as strings."""
    date_format = None
    if column.storage in ("string", "categorical"):
        date_format = find_date_format(*column.to_factor().used())
    if date_format is not None or column.storage == "temporal":
        micros, missing, _ = read_dates(column, date_format.name if date_format else None)
        return np.where(missing, np.nan, micros.astype(np.float64))
    values, others = numbers_or_missing(column)
    if others:
        raise InvalidDataError(
            f"validation_time must name a column of numbers or dates, but {column.name!r} has "
            f"{others[0]!r}."
        )
    return values
