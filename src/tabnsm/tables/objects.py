"""Columns of Python objects: one arrow type where the values share one, else their strings."""

from __future__ import annotations

import datetime
import decimal
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError


def from_objects(name: str, values: Any) -> Any:
    """Arrow data from Python objects: one type where they share one, else their strings.

    Raises TypeError if a value is nested, such as a dict or a list.
    """
    import pyarrow as pa
    import pyarrow.types as pt

    try:
        data = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        data = None
    if data is not None and not (pt.is_nested(data.type) or pt.is_binary(data.type)):
        return data
    cleaned = [None if _is_missing(value) else value for value in values]
    present = [value for value in cleaned if value is not None]
    for value in present:
        if isinstance(value, (dict, list, tuple, set, frozenset, np.ndarray)):
            raise nested_error(name, value)
        if isinstance(value, (complex, np.complexfloating)):
            raise InvalidDataError(f"Complex data not supported, column {name!r} has {value!r}.")
    if all(isinstance(value, (numbers.Number, np.bool_)) for value in present):
        return pa.array([np.nan if value is None else _as_float(value) for value in cleaned])
    if all(isinstance(value, datetime.date) for value in present):
        stamps = [None if value is None else _as_utc(value) for value in cleaned]
        return pa.array(stamps, type=pa.timestamp("us"))
    return pa.array([None if value is None else _write(value) for value in cleaned])


def from_times(values: NDArray[Any]) -> Any:
    """Arrow data from dates or durations of numpy, in microseconds."""
    import pyarrow as pa

    kind = "datetime64" if values.dtype.kind == "M" else "timedelta64"
    return pa.array(np.ascontiguousarray(values.astype(f"{kind}[us]")), from_pandas=True)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _as_utc(value: datetime.date) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def _write(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, (float, np.floating, decimal.Decimal)) and float(value).is_integer():
        return str(int(value))
    # Half of a surrogate pair is no valid text, but must not stop a fit.
    return str(value).encode(errors="replace").decode()


def _is_missing(value: object) -> bool:
    # pandas.NA and NaT compare neither equal nor unequal to themselves as plain booleans.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating, decimal.Decimal)) and value != value


def nested_error(name: str, value: object) -> TypeError:
    """What to say of a column with values inside values.

    scikit-learn expects this type and wording.
    """
    return TypeError(
        f"Column {name!r} holds nested values: a cell argument must be a string or a number, "
        f"got {value!r}. Flatten it into columns of their own, or drop it."
    )
