"""A dataset of Parquet or Arrow files, of which one column is in memory at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.tables.column import Factor
from tabnsm.tables.dataset_parts import join_pieces, pieces_of
from tabnsm.tables.dataset_schema import (
    common_schema,
    is_string,
    partition_clash,
    reject_nested,
)
from tabnsm.tables.stored import store_distinct
from tabnsm.work_folder import WorkFolder

FORMATS = {".parquet": "parquet", ".feather": "ipc", ".arrow": "ipc"}
"""Endings of the files of a dataset, and what pyarrow calls their kind."""
_BATCH_ROWS = 2**16
# Columns of strings that several steps of a fit look at are kept up to so many bytes.
_MAX_KEPT_BYTES = 2**27
# Distinct strings of a column above which they are kept in files.
_MAX_STRING_BYTES = 2**24


class FileStamp(NamedTuple):
    """A file as it was when the dataset was opened."""

    path: str
    n_bytes: int
    modified: int

    @classmethod
    def of(cls, path: str) -> FileStamp:
        """Size and time of a file; zeros if it is gone."""
        try:
            found = os.stat(path)
        except OSError:
            return cls(path, 0, 0)
        return cls(path, found.st_size, found.st_mtime_ns)


class DatasetSource:
    """Columns of a dataset; every call reads the files again.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    stamps : sequence of FileStamp
        Its files, which must not change; none where they are not known.
    positions : sequence of int or None
        Columns, among those of the dataset; None for all.
    rows : ndarray of int64 or None
        Rows, ascending; None for all.
    """

    def __init__(
        self,
        dataset: Any,
        stamps: Sequence[FileStamp] = (),
        positions: Sequence[int] | None = None,
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        self.dataset = dataset
        self.stamps = tuple(stamps)
        self._positions = list(range(len(dataset.schema)) if positions is None else positions)
        self._rows = rows
        self.n_columns = len(self._positions)
        self.on_read: Callable[[], None] | None = None
        self.folder: WorkFolder | None = None
        """Where the distinct strings of a column are kept if they are many; None is in memory."""

    def __getstate__(self) -> dict[str, Any]:
        """All but the folder and what reports progress, which are of this process."""
        return self.__dict__ | {"folder": None, "on_read": None}

    @cached_property
    def n_all_rows(self) -> int:
        """Rows of the dataset."""
        return int(self.dataset.count_rows())

    @property
    def n_rows(self) -> int:
        """Rows of this table."""
        return self.n_all_rows if self._rows is None else len(self._rows)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [self.dataset.schema.field(position).name for position in self._positions]

    @property
    def max_kept(self) -> int:
        """Columns that may be kept in memory."""
        return _MAX_KEPT_BYTES // (8 * max(self.n_rows, 1))

    @cached_property
    def is_number(self) -> list[bool]:
        """For each column, whether it holds plain numbers or booleans."""
        import pyarrow.types as pt

        kinds = [self.dataset.schema.field(position).type for position in self._positions]
        return [pt.is_integer(k) or pt.is_floating(k) or pt.is_boolean(k) for k in kinds]

    @property
    def n_expected_features(self) -> int:
        """About how many features the columns will have, by their types alone."""
        import pyarrow.types as pt

        kinds = [self.dataset.schema.field(position).type for position in self._positions]
        return sum(8 if pt.is_timestamp(k) or pt.is_date(k) else 1 for k in kinds)

    def numbers(self, positions: Sequence[int]) -> NDArray[Any]:
        """Several number columns as one float matrix, NaN where missing."""
        block = np.empty((self.n_rows, len(positions)), order="F")
        for target, position in enumerate(positions):
            start = 0
            for array in self._arrays(position):
                # Booleans with missing values arrive as objects, with None where one is missing.
                block[start : start + len(array), target] = array.to_numpy(zero_copy_only=False)
                start += len(array)
            self._note_read()
        return block

    def arrow(self, position: int, name: str) -> Any:
        """One column as arrow data; strings as codes into the distinct ones, or as a factor."""
        import pyarrow as pa

        kind = self.dataset.schema.field(self._positions[position]).type
        if is_string(kind):
            data = self._strings(position)
        else:
            data = pa.chunked_array(list(self._arrays(position)), type=kind)
        self._note_read()
        return data

    def _strings(self, position: int) -> Any:
        import pyarrow as pa

        coded: list[Any] = []
        n_new = 0
        for array in self._arrays(position):
            coded.append(array.cast(pa.large_string()).dictionary_encode())
            n_new += coded[-1].dictionary.nbytes
            if n_new > _MAX_STRING_BYTES:  # many batches may have the same strings
                coded, n_new = pa.chunked_array(coded).unify_dictionaries().chunks, 0
                if self.folder is not None and coded[0].dictionary.nbytes > _MAX_STRING_BYTES:
                    n_rows = sum(map(len, coded))
                    del coded
                    return self._stored(position, n_rows)
        if not coded:
            return pa.chunked_array([], type=pa.large_string())
        return pa.chunked_array(coded).unify_dictionaries()

    def _stored(self, position: int, n_read: int) -> Factor:
        """A column of strings with the distinct ones in files, too many in the rows read so far."""
        assert self.folder is not None
        n_strings = _MAX_STRING_BYTES * self.n_rows // max(n_read, 1)
        self.folder.check_space(2 * n_strings + 16 * self.n_rows)
        read = partial(self._arrays, position)
        return Factor(*store_distinct(read, self.n_rows, self.folder))

    def is_written(self, position: int) -> bool:
        """Whether a column holds plain strings, which `arrow` gives as codes."""
        return is_string(self.dataset.schema.field(self._positions[position]).type)

    def take(self, rows: NDArray[np.int64]) -> DatasetSource:
        """Some rows, in ascending order."""
        chosen = rows if self._rows is None else self._rows[rows]
        return self._view(self._positions, chosen)

    def select(self, positions: Sequence[int]) -> DatasetSource:
        """Some columns."""
        return self._view([self._positions[position] for position in positions], self._rows)

    def part(self, start: int, stop: int) -> DatasetSource:
        """Consecutive rows, at least one; no file and no row group without any of them is read."""
        rows = np.arange(start, stop) if self._rows is None else self._rows[start:stop]
        ends = np.cumsum([n_rows for _, n_rows in self._pieces])
        low, high = np.searchsorted(ends, (rows[0], rows[-1]), side="right")
        pieces, first = self._pieces[low : high + 1], int(ends[low]) - self._pieces[low][1]
        paths = {piece.path for piece, _ in pieces}
        stamps = [stamp for stamp in self.stamps if stamp.path in paths]
        dataset = join_pieces(self.dataset, pieces)
        view = DatasetSource(dataset, stamps, self._positions, rows - first)
        view.folder = self.folder
        view.__dict__["n_all_rows"] = sum(n_rows for _, n_rows in pieces)
        return view

    @cached_property
    def _pieces(self) -> list[tuple[Any, int]]:
        return pieces_of(self.dataset)

    def _view(self, positions: Sequence[int], rows: NDArray[np.int64] | None) -> DatasetSource:
        view = DatasetSource(self.dataset, self.stamps, positions, rows)
        view.__dict__["n_all_rows"] = self.n_all_rows
        view.on_read = self.on_read
        view.folder = self.folder
        return view

    def batches(self, batch_rows: int) -> Iterator[Any]:
        """The rows of all columns as pyarrow tables of at most so many rows."""
        import pyarrow as pa

        fields = [self.dataset.schema.field(position) for position in self._positions]
        schema = pa.schema(fields)
        for batch, rows in self._scan(range(self.n_columns), batch_rows):
            table = pa.Table.from_arrays(batch.columns, schema=schema)
            yield table if rows is None else table.take(rows)

    def check_unchanged(self) -> None:
        """Refuse to go on with files that were written since the dataset was opened."""
        for stamp in self.stamps:
            if FileStamp.of(stamp.path) != stamp:
                raise _changed(f"{stamp.path} was written or removed meanwhile")

    def _arrays(self, position: int) -> Iterator[Any]:
        """The pieces of a column, in the order of its rows."""
        for batch, rows in self._scan([position], _BATCH_ROWS):
            array = batch.column(0)
            yield array if rows is None else array.take(rows)

    def _note_read(self) -> None:
        if self.on_read is not None:
            self.on_read()

    def _scan(self, positions: Sequence[int], batch_rows: int) -> Iterator[tuple[Any, Any]]:
        """Record batches, and the places of the rows to take of each; None for all."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        self.check_unchanged()
        names = self.names
        columns = {str(k): ds.field(names[position]) for k, position in enumerate(positions)}
        start = 0
        try:
            scanner = self.dataset.scanner(
                columns=columns,
                batch_size=batch_rows,
                batch_readahead=2,
                fragment_readahead=1,
                use_threads=False,
                cache_metadata=False,
            )
            for batch in scanner.to_batches():
                stop = start + batch.num_rows
                if self._rows is None:
                    yield batch, None
                else:
                    first, last = np.searchsorted(self._rows, (start, stop))
                    yield batch, self._rows[first:last] - start
                start = stop
        except pa.ArrowMemoryError:
            raise
        except (pa.ArrowException, OSError) as error:
            self.check_unchanged()
            reason = str(error).split("\n", 1)[0].rstrip(".")
            raise InvalidDataError(
                f"A dataset must have files that can be read whole, but pyarrow reports: {reason}. "
                "Get a fresh copy of the file, or leave it out."
            ) from error
        if start != self.n_all_rows:
            raise _changed(f"it had {self.n_all_rows:,} rows and now has {start:,}")


def is_dataset(X: Any) -> bool:
    """Whether a table is given by the path of files, or as a pyarrow.dataset.Dataset."""
    if isinstance(X, (str, os.PathLike)) or isinstance(getattr(X, "dataset", None), DatasetSource):
        return True
    return any(base.__module__ == "pyarrow._dataset" for base in type(X).__mro__)


def open_dataset(X: Any) -> DatasetSource:
    """Open a Parquet or Arrow file, a folder or glob of such files, or a pyarrow Dataset.

    Only schemas are read. Subfolders such as ``year=2024`` add a column.

    Raises
    ------
    InvalidDataError
        If there are no files, or if they are of several kinds, or differ in their columns.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not isinstance(X, (str, os.PathLike)):
        files = getattr(X, "files", None) or []
        stamps = [FileStamp.of(path) for path in files if os.path.exists(path)]
        return _without_index(X, stamps)
    if not os.fspath(X):
        raise InvalidDataError(
            "A dataset must be the path of files, got ''. Write '.' for the folder of this process."
        )
    X = os.path.abspath(os.path.expanduser(X))  # which processes of other folders read, too
    files = find_files(X)
    kinds = {FORMATS[Path(file).suffix.lower()] for file in files}
    if len(kinds) > 1:
        raise InvalidDataError(
            f"A dataset must have files of one kind, but {X} has Parquet and Arrow files. Name "
            f"them by a pattern, such as {os.path.join(str(X), '*.parquet')!r}."
        )
    stamps = [FileStamp.of(file) for file in files]
    kind = kinds.pop()
    schema = common_schema(files, kind)
    folder = os.path.expanduser(X)
    base = folder if os.path.isdir(folder) else os.path.dirname(files[0])
    hive = ds.partitioning(flavor="hive")
    options = {"format": kind, "partitioning": hive, "partition_base_dir": base}
    try:
        found = ds.dataset(files, **options)
    except pa.ArrowException as error:
        raise partition_clash(files, base, schema.names, error) from error
    known = set(schema.names)
    parts = [field for field in found.schema if field.name not in known]
    for field in parts:
        schema = schema.append(field)
    return _without_index(ds.dataset(files, schema=schema, **options), stamps)


def find_files(path: str | os.PathLike[str]) -> list[str]:
    """Files of a dataset, sorted: one file, those of a folder and its subfolders, or of a glob."""
    text = os.path.expanduser(path)
    if os.path.isdir(text):
        inside = (
            os.path.join(folder, name) for folder, _, names in os.walk(text) for name in names
        )
        every = [file for file in inside if not is_hidden(file, text)]
    else:
        every = [text] if os.path.isfile(text) else glob.glob(text, recursive=True)
    files = sorted(file for file in every if Path(file).suffix.lower() in FORMATS)
    if files:
        return files
    endings = ", ".join(FORMATS)
    if not every:
        raise InvalidDataError(
            f"A dataset must have files, but {text} "
            + ("is an empty folder." if os.path.isdir(text) else "matches no file.")
            + f" Name a file, a folder or a pattern of files that end in {endings}; for other "
            "places, such as s3://, pass a pyarrow.dataset.Dataset."
        )
    raise InvalidDataError(
        f"A dataset must have files that end in {endings}, got {sorted(every)[0]}. Read it into a "
        "DataFrame first, or write it as Parquet, for example with DataFrame.to_parquet."
    )


def is_hidden(file: str | Path, folder: str | Path) -> bool:
    """Whether a file in a folder is no data by its name or a subfolder's, as for Spark and pyarrow.

    Examples
    --------
    >>> is_hidden("data/_temporary/0.parquet", "data"), is_hidden("_data/0.parquet", "_data")
    (True, False)
    """
    return any(part.startswith(("_", ".")) for part in Path(os.path.relpath(file, folder)).parts)


def _without_index(dataset: Any, stamps: Sequence[FileStamp]) -> DatasetSource:
    """All columns but the index of pandas, after a look at their types."""
    names = dataset.schema.names
    reject_nested(dataset.schema)
    # pandas stores an index without a name as a column of this name; it is no column of the user's.
    kept = [k for k, name in enumerate(names) if not name.startswith("__index_level_")]
    return DatasetSource(dataset, stamps, kept)


def _changed(found: str) -> InvalidDataError:
    return InvalidDataError(
        f"A dataset must not change while it is read, but {found}. Start again once nothing "
        "writes to it any more."
    )
