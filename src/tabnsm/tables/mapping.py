"""A dict of columns, each a list, an array or a Series, as one arrow table."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm.tables.objects import from_objects
from tabnsm.tables.sources import ArraySource, ArrowSource, PandasSource


def read_mapping(columns: Mapping[Any, Any]) -> ArrowSource:
    """Arrow data from a dict of columns.

    Values are a list, tuple or range, a 1-D array, or a Series. Raises `InvalidDataError` if a
    column is a single value, or they differ in length.

    Examples
    --------
    >>> read_mapping({"a": [1, 2], "b": np.array([0.5, 1.5])}).numbers([0, 1])
    array([[1. , 0.5],
           [2. , 1.5]])
    """
    import pyarrow as pa

    data = [_to_arrow(str(name), values) for name, values in columns.items()]
    lengths = {name: len(values) for name, values in zip(columns, data, strict=True)}
    if len(set(lengths.values())) > 1:
        first, *others = lengths.items()
        other = next(pair for pair in others if pair[1] != first[1])
        raise InvalidDataError(
            f"The columns of a dict must have one length, got {first[1]} value(s) for "
            f"{first[0]!r} and {other[1]} for {other[0]!r}. Pass one value per row in each, None "
            "where one is missing."
        )
    return ArrowSource(pa.table(data, names=[str(name) for name in columns]))


def _to_arrow(name: str, values: Any) -> Any:
    import narwhals as nw
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    values = nw.to_native(values, pass_through=True)
    if nw.dependencies.is_pandas_series(values):
        return PandasSource(values.to_frame()).arrow(0, name)
    if nw.dependencies.is_polars_series(values):
        return values.to_arrow()
    if isinstance(values, (list, tuple, range)):
        return from_objects(name, list(values))
    if isinstance(values, np.ndarray) or hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind != "c":
            return ArraySource(array[:, None]).arrow(0, name)
        found = f"an array of dtype {array.dtype} and shape {array.shape}"
    else:
        found = f"{reprlib.repr(values)} ({type(values).__name__})"
    raise InvalidDataError(
        f"Each column of a dict must be a list, a Series or a 1-D array of real values, got "
        f"{found} for {name!r}. A table of one row has lists of one value: {{{name!r}: [...]}}."
    )
