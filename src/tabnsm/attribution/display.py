"""Values of columns beside their contributions: as objects to read, as numbers to colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def display_matrix(columns: Sequence[np.ndarray], n_rows: int, n_columns: int) -> np.ndarray:
    """Columns as one matrix of objects; None everywhere if there are no values.

    Examples
    --------
    >>> display_matrix([np.array([1.5]), np.array(["red"], dtype=object)], 1, 2)
    array([[1.5, 'red']], dtype=object)
    """
    matrix = np.full((n_rows, n_columns), None, dtype=object)
    for k, values in enumerate(columns):
        matrix[:, k] = values
    return matrix


def numeric_matrix(columns: Sequence[np.ndarray], n_rows: int, n_columns: int) -> np.ndarray:
    """Columns as one matrix of float64; see `as_numbers`.

    Examples
    --------
    >>> numeric_matrix([np.array([1.5]), np.array(["red"], dtype=object)], 1, 2)
    array([[1.5, 0. ]])
    """
    matrix = np.full((n_rows, n_columns), np.nan)
    for k, values in enumerate(columns):
        matrix[:, k] = as_numbers(values)
    return matrix


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Numbers as they are, strings as their place in the sorted order; NaN is missing.

    Examples
    --------
    >>> as_numbers(np.array(["b", None, "a"], dtype=object))
    array([ 1., nan,  0.])
    """
    if values.dtype.kind == "f":
        return values
    known = np.array([value is not None for value in values], dtype=bool)
    numbers = np.full(len(values), np.nan)
    if known.any():
        numbers[known] = np.unique(values[known].astype(str), return_inverse=True)[1]
    return numbers
