"""A folder or a pattern of Parquet or Arrow files as one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabnsm.files.table_file import TableFile
from tabnsm.tables.dataset import open_dataset


class DatasetFile(TableFile):
    """The files of a dataset, in the order of their names."""

    def __init__(self, path: Path) -> None:
        self._source = open_dataset(path)
        super().__init__(path, self._source.names, self._source.n_rows)

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        chosen = self._source.select([self.names.index(name) for name in columns])
        for table in chosen.batches(batch_rows):
            yield from table.to_batches()
