"""Targets as users have them, checked before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError, warn
from tabnsm.tables.column import Column
from tabnsm.tables.objects import from_objects, from_times
from tabnsm.tables.reading import numbers_or_missing


def check_target(
    y: Any, n_rows: int, *, must_vary: bool = True, label: str = "The target"
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read one target and refuse one that cannot be learned.

    Parameters
    ----------
    y : array-like
        List, numpy array, pandas or polars Series, arrow array, or a `Column`.
    n_rows : int
        Number of rows of the table it belongs to.
    must_vary : bool, default=True
        Whether a constant target is refused; one to validate on may be constant.
    label : str, default="The target"
        What messages call it.

    Returns
    -------
    tuple of ndarray
        The target as float64, and a mask of the rows where it is missing.

    Raises
    ------
    InvalidDataError
        If it is text, all missing, constant, infinite, complex or of another length.

    Examples
    --------
    >>> check_target([1, None, "3.5"], 3)
    (array([1. , nan, 3.5]), array([False,  True, False]))
    >>> check_target(["$1,200", "?", "$35.50"], 3)[0]
    array([1200. ,    nan,   35.5])
    """
    if y is None:
        raise InvalidDataError(
            "TabNSMRegressor requires y to be passed, but the target y is None. "
            "Call fit(X, y) with one number per row."
        )
    if isinstance(y, str):
        raise InvalidDataError(
            f"y must have one value per row of a table in memory, got the name {y!r}. Pass "
            f"X.drop(columns={y!r}) and X[{y!r}]; names are for a dataset, which is a path."
        )
    values = _to_float(_one_dimension(y), label)
    if len(values) != n_rows:
        raise InvalidDataError(
            f"{label} must have one value per row of the table, got {len(values)} value(s) "
            f"for {n_rows} row(s). Found input variables with inconsistent numbers of samples."
        )
    infinite = np.isinf(values)
    if infinite.any():
        raise InvalidDataError(
            f"{label} must be finite, got {int(infinite.sum())} infinite value(s), the first "
            f"in row {int(np.argmax(infinite))}. Input y contains infinity; drop or correct these "
            "rows."
        )
    missing = np.isnan(values)
    if missing.all():
        raise InvalidDataError(
            f"{label} must have values, got {len(values)} missing one(s). Input y contains NaN "
            "only; check the name of the target column."
        )
    present = values[~missing]
    if must_vary and len(present) > 1 and present.min() == present.max():
        raise InvalidDataError(
            f"{label} must vary, got {present[0]:g} in all {len(present)} rows. There is "
            "nothing to learn; check the name of the target column."
        )
    return values, missing


def _one_dimension(y: Any) -> Any:
    """Arrow data or a 1-D array; a single column is raveled with scikit-learn's warning."""
    import pyarrow as pa

    if isinstance(y, (Column, pa.Array, pa.ChunkedArray)):
        return y
    if hasattr(y, "toarray") and hasattr(y, "nnz"):
        raise TypeError("The target must be dense, got a sparse matrix. Call y.toarray() first.")
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(object), np.nan)
    if hasattr(y, "to_arrow") and not hasattr(y, "columns"):
        return y.to_arrow()
    if not isinstance(y, np.ndarray) and not hasattr(y, "__array__"):
        y = list(y) if not isinstance(y, (str, bytes)) and hasattr(y, "__iter__") else y
        values = _as_array(y)
    elif hasattr(y, "dtype") and str(y.dtype) in ("str", "string", "category"):
        values = np.asarray(y, dtype=object)
    else:
        values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples, ), for example using ravel().",
            DataConversionWarning,
        )
        values = values.ravel()
    if values.ndim != 1:
        raise InvalidDataError(
            f"y should be a 1d array, got an array of shape {values.shape} instead. "
            "Pass one number per row, or for several targets a table with one column each."
        )
    return values


def _as_array(y: Any) -> NDArray[Any]:
    if not isinstance(y, list):
        return np.asarray(y)
    if not any(isinstance(value, (list, tuple)) for value in y):
        array = np.empty(len(y), dtype=object)
        array[:] = y
        return array
    try:
        return np.asarray(y)
    except ValueError as error:
        raise InvalidDataError(
            "y should be a 1d array, got lists of several lengths. Pass one number per row, or for "
            "several targets one list of numbers per row, None where one is missing."
        ) from error


def _to_float(values: Any, label: str) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "c":
            raise InvalidDataError(
                f"Complex data not supported, y has dtype {values.dtype}. "
                "Fit one model for the real and one for the imaginary part."
            )
        if values.dtype.kind in "iufb":
            return values.astype(np.float64)
        if values.dtype.kind in "mM":
            values = from_times(values)
        else:
            is_text = values.dtype.kind in "US"
            values = from_objects("target", values.tolist() if is_text else values)
    column = values if isinstance(values, Column) else Column("target", values)
    if column.storage == "temporal":
        raise InvalidDataError(
            f"{label} must be numbers, got dates. Convert them, for example to days since a "
            "fixed date."
        )
    if column.is_duration:
        warn(
            f"{label} holds durations and is learned in seconds, which predictions are, too. "
            "Convert it to numbers to learn another unit, for example with y / "
            "pandas.Timedelta('1h')."
        )
    numbers, bad = numbers_or_missing(column)
    if bad:
        raise InvalidDataError(
            f"{label} must be numbers, got text such as {', '.join(map(repr, bad[:3]))}. "
            "Convert it, for example with pandas.to_numeric, or map each word to a number."
        )
    return numbers
