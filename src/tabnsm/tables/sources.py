"""Fast access to the columns of each kind of table that users bring."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.tables.objects import from_objects, from_times

_NUMBER_KINDS = "iufb"


class TableSource(Protocol):
    """What :class:`~tabnsm.tables.Table` needs of a library."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Number of columns."""

    @property
    def is_number(self) -> list[bool]:
        """For each column, whether it holds plain numbers or booleans."""

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix, NaN where missing."""

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""

    def take(self, rows: NDArray[np.int64]) -> TableSource:
        """Some rows."""


class ArraySource:
    """A 2-D numpy array."""

    def __init__(self, matrix: NDArray[Any]) -> None:
        self._matrix: Any = matrix
        self.n_rows, self.n_columns = matrix.shape

    @property
    def is_number(self) -> list[bool]:
        """All or none: an array has one type."""
        return [self._matrix.dtype.kind in _NUMBER_KINDS] * self.n_columns

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix."""
        block: NDArray[Any] = self._matrix[:, as_slice(positions)]
        return block if block.dtype.kind == "f" else block.astype(np.float64)

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        import pyarrow as pa

        values = self._matrix[:, position]
        if values.dtype.kind in _NUMBER_KINDS:
            return pa.array(np.ascontiguousarray(values, dtype=np.float64), from_pandas=True)
        if values.dtype.kind in "mM":
            return from_times(values)
        return from_objects(name, values.tolist() if values.dtype.kind in "US" else values)

    def take(self, rows: NDArray[np.int64]) -> ArraySource:
        """Some rows."""
        return ArraySource(self._matrix[rows])


class PandasSource:
    """A pandas DataFrame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.n_rows, self.n_columns = frame.shape
        if "c" in self._kinds:
            name = str(frame.columns[self._kinds.index("c")])
            raise complex_error(f"column {name!r} is complex")

    @cached_property
    def _kinds(self) -> list[str]:
        return [getattr(dtype, "kind", "O") for dtype in self._frame.dtypes]

    @property
    def is_number(self) -> list[bool]:
        """For each column, whether it holds plain numbers or booleans."""
        return [kind in _NUMBER_KINDS for kind in self._kinds]

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix, NaN where missing."""
        whole = len(positions) == self.n_columns and list(positions) == list(range(self.n_columns))
        frame = self._frame if whole else self._frame.take(list(positions), axis=1)
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        import pyarrow as pa

        series = self._frame.iloc[:, position]
        if self._kinds[position] == "O" and series.dtype == object:
            return from_objects(name, series.to_numpy())
        if str(series.dtype).startswith("period"):
            series = series.dt.to_timestamp()
        try:
            return pa.array(series, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            return from_objects(name, series.to_numpy(dtype=object))

    def take(self, rows: NDArray[np.int64]) -> PandasSource:
        """Some rows."""
        return PandasSource(self._frame.iloc[rows])


class PolarsSource:
    """A polars DataFrame."""

    def __init__(self, frame: Any) -> None:
        # Neither numpy nor arrow has integers of 128 bits.
        wide = [name for name, dtype in frame.schema.items() if str(dtype).endswith("Int128")]
        self._frame = frame.cast(dict.fromkeys(wide, float)) if wide else frame
        self.n_rows, self.n_columns = frame.shape

    @cached_property
    def is_number(self) -> list[bool]:
        """For each column, whether it holds plain numbers or booleans."""
        return [
            (dtype.is_numeric() and not dtype.is_decimal()) or str(dtype) == "Boolean"
            for dtype in self._frame.dtypes
        ]

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix, NaN where missing."""
        import polars as pl

        block = self._frame
        if list(positions) != list(range(self.n_columns)):
            names = self._frame.columns
            block = block.select([names[position] for position in positions])
        # Casting every column would cost more than all else for a single row.
        block = block.with_columns(pl.col(pl.Boolean).cast(pl.Float64))
        return np.asarray(block.to_numpy(), dtype=np.float64)

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        series = self._frame.to_series(position)
        if str(series.dtype) == "Object":
            return from_objects(name, series.to_list())
        return series.to_arrow()

    def take(self, rows: NDArray[np.int64]) -> PolarsSource:
        """Some rows."""
        return PolarsSource(self._frame[rows])


class ArrowSource:
    """A pyarrow Table."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.n_rows, self.n_columns = table.num_rows, table.num_columns

    @cached_property
    def is_number(self) -> list[bool]:
        """For each column, whether it holds plain numbers or booleans."""
        import pyarrow.types as pt

        return [
            pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind)
            for kind in self._table.schema.types
        ]

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix, NaN where missing."""
        block = np.empty((self.n_rows, len(positions)), order="F")
        for target, position in enumerate(positions):
            # Booleans with missing values arrive as objects, with None where one is missing.
            block[:, target] = self._table.column(position).to_numpy()
        return block

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data."""
        return self._table.column(position)

    def take(self, rows: NDArray[np.int64]) -> ArrowSource:
        """Some rows."""
        return ArrowSource(self._table.take(rows))


def as_slice(positions: Sequence[int]) -> slice | list[int]:
    """Neighbouring columns as a slice, which numpy reads without a copy.

    Examples
    --------
    >>> as_slice([2, 3, 4]), as_slice([4, 2])
    (slice(2, 5, None), [4, 2])
    """
    first, last = positions[0], positions[-1]
    if list(positions) == list(range(first, last + 1)):
        return slice(first, last + 1)
    return list(positions)


def complex_error(found: str) -> InvalidDataError:
    """The error for complex numbers; scikit-learn expects how it begins."""
    return InvalidDataError(
        f"Complex data not supported, {found}. Pass real and imaginary parts as two columns."
    )
