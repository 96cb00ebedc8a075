"""Write a table in batches: the whole file appears at the end, or nothing does."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from tabnsm.atomic import replacement
from tabnsm.errors import InvalidDataError
from tabnsm.files.output_path import check_output

_DELIMITED = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
_ENDINGS = (*_DELIMITED, *_JSON_LINES, ".parquet", ".feather", ".arrow")


class TableWriter:
    """Write tables one below the other to a CSV, TSV, JSON lines, Parquet or Feather file.

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
        if self._path is None and sys.stdout is None:
            raise InvalidDataError(
                "The standard output must be open to print rows, but it is closed. Name a file."
            )
        self._replacement = ExitStack()
        self._temporary: Path | None = None
        self._writer: Any = None
        self._stream: TextIO | None = None
        self._write_rows: Callable[[Any], None] | None = None

    def __enter__(self) -> TableWriter:
        if self._path is not None:
            self._temporary = self._replacement.enter_context(replacement(self._path))
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
        if self._write_rows is None:
            self._write_rows = self._open(table.schema)
        self._write_rows(table)

    def _open(self, schema: Any) -> Callable[[Any], None]:
        if self._kind in _DELIMITED:
            lines = csv.writer(
                self._open_text(), delimiter=_DELIMITED[self._kind], lineterminator="\n"
            )
            lines.writerow(schema.names)
            return lambda table: lines.writerows(
                zip(*(column.to_pylist() for column in table.columns), strict=True)
            )
        if self._kind in _JSON_LINES:
            stream = self._open_text()
            return lambda table: stream.writelines(map(_json_line, table.to_pylist()))
        if self._kind == ".parquet":
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(self._temporary, schema)
        else:
            import pyarrow as pa

            self._writer = pa.ipc.new_file(str(self._temporary), schema)
        write_table: Callable[[Any], None] = self._writer.write_table
        return write_table

    def _open_text(self) -> TextIO:
        self._stream = sys.stdout
        if self._temporary is not None:
            self._stream = open(self._temporary, "w", encoding="utf-8", newline="")  # noqa: SIM115
        return self._stream

    def __exit__(self, *error: Any) -> None:
        try:
            self._close()
        except BaseException:
            self._replacement.__exit__(*sys.exc_info())
            raise
        self._replacement.__exit__(*error)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        elif self._stream is not None:
            self._stream.flush()
            if self._temporary is not None:
                self._stream.close()


def _json_line(row: dict[str, Any]) -> str:
    """A row as JSON, which has no NaN and no dates."""
    plain = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
    return json.dumps(plain, ensure_ascii=False, default=_as_text) + "\n"


def _as_text(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _decoded(table: Any) -> Any:
    """Categories as plain values: an Arrow file holds one dictionary, and batches differ in it."""
    import pyarrow as pa
    import pyarrow.types as pt

    types = [t.value_type if pt.is_dictionary(t) else t for t in table.schema.types]
    return table.cast(pa.schema(zip(table.column_names, types, strict=True)))
