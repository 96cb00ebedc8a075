"""Parquet, and Feather or Arrow IPC files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm.files.table_file import TableFile

# pandas stores an index without a name as a column of this name; it is no column of the user's.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class ParquetFile(TableFile):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            self._file = pq.ParquetFile(path)
        except pa.ArrowException as error:
            raise _unreadable(path, "Parquet", error) from error
        names = _without_index(self._file.schema_arrow.names)
        super().__init__(path, names, int(self._file.metadata.num_rows))

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(batch_size=batch_rows, columns=columns):
                yield batch.select(columns)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, "Parquet", error) from error


class ArrowFile(TableFile):
    """A Feather (version 2) or Arrow IPC file, or an Arrow stream."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _without_index(_open_arrow(path).schema.names))

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        import pyarrow as pa

        reader = _open_arrow(self.path)
        try:
            if isinstance(reader, pa.ipc.RecordBatchFileReader):
                for position in range(reader.num_record_batches):
                    yield reader.get_batch(position).select(columns)
            else:
                for batch in reader:
                    yield batch.select(columns)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, "Feather or Arrow", error) from error


def _open_arrow(path: Path) -> Any:
    import pyarrow as pa

    try:
        return pa.ipc.open_file(pa.memory_map(str(path)))
    except pa.ArrowInvalid:
        pass
    try:
        return pa.ipc.open_stream(pa.memory_map(str(path)))
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, "Feather or Arrow", error) from error


def _without_index(names: list[str]) -> list[str]:
    return [name for name in names if not _PANDAS_INDEX.fullmatch(name)]


def _unreadable(path: Path, kind: str, error: Exception) -> InvalidDataError:
    reason = str(error).split("\n", 1)[0].rstrip(".")
    return InvalidDataError(
        f"{path} is not a whole {kind} file ({reason}). Get a fresh copy, or rename it if it is "
        "of another kind."
    )
