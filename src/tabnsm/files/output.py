"""Write a table in batches: the whole file appears at the end, or nothing does."""

from __future__ import annotations

import csv
import os
import secrets
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from tabnsm.errors import InvalidDataError

_ENDINGS = (".csv", ".tsv", ".parquet", ".feather", ".arrow")


def check_output(path: str | Path) -> Path:
    """Check, before long work, that a file can be written.

    Parameters
    ----------
    path : str or Path
        The file to be; it may exist and is then replaced.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    InvalidDataError
        If its folder does not exist or cannot be written to, or the path is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidDataError(f"The output must be a file, but {path} is a folder. Name a file.")
    if not path.parent.is_dir():
        raise InvalidDataError(
            f"The output's folder must exist, but there is no folder {path.parent}. Make it first."
        )
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidDataError(
            f"The output's folder must be writable, but {path.parent} is not. "
            "Choose another folder."
        )
    return path


class TableWriter:
    """Write tables one below the other to a CSV, TSV, Parquet or Feather file.

    A neighbour with a temporary name takes the rows and is renamed when all are there; an error
    or Ctrl-C before that leaves an existing file as it was.

    Parameters
    ----------
    path : str, Path or None
        The file; its extension says the kind. None writes CSV to the standard output.

    Examples
    --------
    >>> import pyarrow
    >>> with TableWriter(None) as writer:
    ...     writer.write(pyarrow.table({"prediction": [1.5, 2.0]}))
    prediction
    1.5
    2.0
    """

    def __init__(self, path: str | Path | None) -> None:
        self._path = None if path is None else check_output(path)
        self._kind = ".csv" if self._path is None else self._path.suffix.lower()
        if self._kind not in _ENDINGS:
            raise InvalidDataError(
                f"The output must end in {', '.join(_ENDINGS)}, got {path}. Rename it."
            )
        self._temporary: Path | None = None
        self._writer: Any = None
        self._stream: TextIO | None = None

    def __enter__(self) -> TableWriter:
        if self._path is not None:
            token = secrets.token_hex(4)
            self._temporary = self._path.with_name(f".{self._path.name}.{token}.tmp")
        return self

    def write(self, table: Any) -> None:
        """Append rows.

        Parameters
        ----------
        table : pyarrow.Table
            With the same columns every time.
        """
        if self._kind in (".feather", ".arrow"):
            table = _decoded(table)
        if self._writer is None:
            self._open(table.schema)
        if self._kind in (".csv", ".tsv"):
            columns = [column.to_pylist() for column in table.columns]
            self._writer.writerows(zip(*columns, strict=True))
        else:
            self._writer.write_table(table)

    def _open(self, schema: Any) -> None:
        if self._kind in (".csv", ".tsv"):
            self._stream = sys.stdout
            if self._temporary is not None:
                self._stream = open(self._temporary, "x", encoding="utf-8", newline="")  # noqa: SIM115
            delimiter = "\t" if self._kind == ".tsv" else ","
            self._writer = csv.writer(self._stream, delimiter=delimiter, lineterminator="\n")
            self._writer.writerow(schema.names)
        elif self._kind == ".parquet":
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(self._temporary, schema)
        else:
            import pyarrow as pa

            self._writer = pa.ipc.new_file(str(self._temporary), schema)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
                if self._temporary is not None:
                    self._stream.close()
            elif self._writer is not None:
                self._writer.close()
            if error is None and self._temporary is not None and self._path is not None:
                os.replace(self._temporary, self._path)
        finally:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)


def _decoded(table: Any) -> Any:
    """Categories as plain values: an Arrow file holds one dictionary, and batches differ in it."""
    import pyarrow as pa
    import pyarrow.types as pt

    types = [t.value_type if pt.is_dictionary(t) else t for t in table.schema.types]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))
