"""Whatever table the user passed, behind one small interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.tables.column import Column, Factor
from tabnsm.tables.dataset import DatasetSource, is_dataset, open_dataset
from tabnsm.tables.mapping import read_mapping
from tabnsm.tables.sources import (
    ArraySource,
    ArrowSource,
    PandasSource,
    PolarsSource,
    TableSource,
    complex_error,
)
from tabnsm.tables.sparse import SparseSource, is_sparse
from tabnsm.work_folder import WorkFolder


class Table:
    """A table with named columns; the user's data is read, never changed.

    Use :meth:`from_native` to make one. `has_names` is true if the names are the user's, so that
    columns are matched by name.

    Examples
    --------
    >>> table = Table.from_native([[1, "a"], [2, "b"]])
    >>> table.names, table.n_rows, table.has_names
    (['x0', 'x1'], 2, False)
    """

    def __init__(self, source: TableSource, names: list[str], has_names: bool) -> None:
        self._source = source
        self.names = names
        self.has_names = has_names
        self._positions = {name: position for position, name in enumerate(names)}
        self._kept: dict[str, Column] | None = None

    @classmethod
    def from_native(cls, X: Any, *, min_rows: int = 1) -> Table:
        """Wrap a pandas, polars or pyarrow table, a 2-D array, a list of rows or a dict of columns.

        Arrays may be sparse matrices of scipy. Any other eager frame that narwhals knows is read
        through arrow. A path, or a pyarrow Dataset, is read a column at a time. Raises
        `InvalidDataError` if it has fewer than `min_rows` rows, is not two-dimensional, complex,
        lazy, or has two columns of one name.
        """
        if isinstance(X, Table):
            return X
        source, labels = _read(X)
        names = [str(label) for label in labels] if labels is not None else []
        has_names = labels is not None and all(isinstance(label, str) for label in labels)
        if has_names:
            _reject_duplicates(names)
        elif len(set(names)) != source.n_columns:
            names = [f"x{position}" for position in range(source.n_columns)]
        _reject_empty(source, min_rows)
        return cls(source, names, has_names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._source.n_rows

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self._source.n_columns

    @property
    def is_number(self) -> list[bool]:
        """For each column, whether :meth:`numbers` can read it in one block."""
        return self._source.is_number

    def position(self, name: str) -> int:
        """Position of a column."""
        return self._positions[name]

    def column(self, name: str) -> Column:
        """One column with its conversions."""
        if self._kept is None:
            return self._read_column(name)
        if name in self._kept:
            return self._kept[name]
        column = self._read_column(name)
        if self.dataset is None or column.is_stored or len(self._kept) < self.dataset.max_kept:
            self._kept[name] = column
        return column

    @property
    def dataset(self) -> DatasetSource | None:
        """The files that the columns are read from, if they are not in memory."""
        return self._source if isinstance(self._source, DatasetSource) else None

    @contextmanager
    def keep_columns(self) -> Iterator[None]:
        """Convert a column at most once as long as this lasts; calls may be nested.

        Number columns that are read by :meth:`numbers` need no conversion and are not kept.

        Examples
        --------
        >>> table = Table.from_native([["a"], ["b"]])
        >>> with table.keep_columns():
        ...     table.column("x0") is table.column("x0")
        True
        >>> table.column("x0") is table.column("x0")
        False
        """
        if self._kept is not None:
            yield
            return
        self._kept = {}
        try:
            yield
        finally:
            self._kept = None

    def _read_column(self, name: str) -> Column:
        position = self._positions[name]
        data = self._source.arrow(position, name)
        if isinstance(data, Factor):
            return Column.from_factor(name, data)
        is_written = self.dataset is not None and self.dataset.is_written(position)
        return Column(name, data, is_written=is_written)

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one matrix, NaN where missing.

        `is_number` holds for them. The matrix, (n_rows, len(positions)), is of the source's float
        type, or float64.
        """
        return self._source.numbers(positions)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Some rows as a table of their own."""
        return Table(self._source.take(np.asarray(rows)), self.names, self.has_names)

    def with_folder(self, folder: WorkFolder | None) -> Table:
        """The same table; of a dataset, strings that are too many for memory go to a folder."""
        if self.dataset is None:
            return self
        source = self.dataset.select(range(self.n_columns))
        source.folder = folder
        return Table(source, self.names, self.has_names)

    def part(self, start: int, stop: int) -> Table:
        """Consecutive rows of a dataset, which are read without the others."""
        assert self.dataset is not None
        return Table(self.dataset.part(start, stop), self.names, self.has_names)

    def without(self, names: Sequence[str]) -> Table:
        """The other columns of a dataset as a table of their own."""
        assert self.dataset is not None
        kept = [position for name, position in self._positions.items() if name not in names]
        return Table(self.dataset.select(kept), [self.names[k] for k in kept], self.has_names)


def _read(X: Any) -> tuple[TableSource, list[Any] | None]:
    """Find the library a table comes from without importing one that is not in use."""
    if is_dataset(X):
        source = open_dataset(X)
        return source, source.names
    import narwhals as nw

    X = nw.to_native(X, pass_through=True)
    if is_sparse(X):  # before mappings, of which a matrix of keys is one
        if len(X.shape) != 2:
            raise _not_two_dimensional(len(X.shape), X)
        return SparseSource(X), None
    if isinstance(X, Mapping):
        return read_mapping(X), list(X)
    if nw.dependencies.is_pandas_dataframe(X):
        return PandasSource(X), list(X.columns)
    if nw.dependencies.is_polars_dataframe(X):
        return PolarsSource(X), list(X.columns)
    if nw.dependencies.is_pyarrow_table(X):
        return ArrowSource(X), list(X.column_names)
    arrow = nw.dependencies.get_pyarrow()
    if arrow is not None and isinstance(X, arrow.RecordBatch):
        return ArrowSource(arrow.Table.from_batches([X])), list(X.schema.names)
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise InvalidDataError(
            f"A table must be in memory, got a lazy {type(X).__name__}. Call .collect() on it, or "
            "pass the path of its Parquet files."
        )
    if isinstance(frame, nw.Series):
        raise _not_two_dimensional(1, X)
    if isinstance(frame, nw.DataFrame):
        return ArrowSource(frame.to_arrow()), list(frame.columns)
    return ArraySource(_as_matrix(X)), None


def _as_matrix(X: Any) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(object), np.nan)
    try:
        matrix = np.asarray(X)
        if matrix.dtype.kind in "USV" and not isinstance(X, np.ndarray):
            # A list of mixed rows would turn numbers and None into strings.
            matrix = np.asarray(X, dtype=object)
    except ValueError as error:
        raise InvalidDataError(
            f"A table must have rows of one length, and numpy says: {str(error).rstrip('.')}. "
            "Pass a DataFrame or a 2-D array."
        ) from error
    if matrix.dtype.kind == "c":
        raise complex_error(f"got dtype {matrix.dtype}")
    if matrix.ndim != 2:
        raise _not_two_dimensional(matrix.ndim, X)
    return matrix


def _not_two_dimensional(n_dimensions: int, X: Any) -> InvalidDataError:
    remedy = (
        "Reshape your data either using array.reshape(-1, 1) if it has a single feature "
        "or array.reshape(1, -1) if it contains a single sample."
        if n_dimensions < 2
        else "Reshape your data to one row per sample and one column per feature."
    )
    return InvalidDataError(
        f"Expected 2D array, got {n_dimensions}D {type(X).__name__} instead. {remedy}"
    )


def _reject_duplicates(names: list[str]) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    doubled = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    raise InvalidDataError(
        f"Column names must be unique, got {', '.join(map(repr, doubled[:5]))} more than once. "
        "Rename or drop the extra columns."
    )


def _reject_empty(source: TableSource, min_rows: int) -> None:
    shape = (source.n_rows, source.n_columns)
    for count, least, what in (
        (source.n_rows, min_rows, "sample"),
        (source.n_columns, 1, "feature"),
    ):
        if count < least:
            raise InvalidDataError(
                f"Found array with {count} {what}(s) (shape={shape}) while a minimum of {least} is "
                "required."
            )
