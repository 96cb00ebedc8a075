"""Excel workbooks: the first sheet, whose first row is the header."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError, MissingExtraError, warn
from tabnsm.files.delimited import name_blanks, without_missing
from tabnsm.files.table_file import TableFile


class ExcelFile(TableFile):
    """An .xlsx file, which is read as a whole when it is opened.

    Numbers, dates and booleans are what the cells hold; a column with more than one kind is read as
    strings. Strings that stand for a missing value in CSV files do so here, too. Needs the extra
    "excel".
    """

    def __init__(self, path: Path) -> None:
        rows = _read_sheet(path)
        rows = [row for row in rows if any(cell != "" for cell in row)]
        if not rows:
            raise InvalidDataError(
                f"A table must have a header and rows, but the first sheet of {path} is blank."
            )
        header, *body = rows
        columns = [[None if row[k] == "" else row[k] for row in body] for k in range(len(header))]
        used = [k for k, name in enumerate(header) if name != "" or any(_present(columns[k]))]
        names = name_blanks(path, [_as_text(header[k]) for k in used])
        super().__init__(path, names, len(body))
        self._columns = dict(zip(self.names, (columns[k] for k in used), strict=True))

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        import pyarrow as pa

        arrays = [_to_arrow(self._columns[name], as_written) for name in columns]
        yield from pa.table(arrays, names=columns).to_batches(max_chunksize=batch_rows)


def _read_sheet(path: Path) -> list[list[Any]]:
    try:
        from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum
    except ImportError as error:
        raise MissingExtraError("excel", "Excel files") from error
    try:
        with CalamineWorkbook.from_path(path) as book:
            sheets = [s.name for s in book.sheets_metadata if s.typ == SheetTypeEnum.WorkSheet]
            if not sheets:
                raise InvalidDataError(
                    f"A workbook must have a sheet of cells, but {path} has none."
                )
            rows: list[list[Any]] = book.get_sheet_by_name(sheets[0]).to_python()
    except CalamineError as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise InvalidDataError(
            f"{path} is not a whole Excel workbook ({reason}). Get a fresh copy, remove its "
            "password, or save it as .csv."
        ) from error
    if len(sheets) > 1:
        warn(
            f"{path} has {len(sheets)} sheets, of which the first, {sheets[0]!r}, was read. If "
            "another one holds the table, save it as a file of its own."
        )
    return rows


def _to_arrow(cells: list[Any], as_written: bool) -> Any:
    """One type per column."""
    import pyarrow as pa

    if not as_written:
        cells = _without_missing(cells)
    kinds = {_kind(cell) for cell in _present(cells)}
    if kinds == {"number"}:
        is_whole = all(float(cell).is_integer() for cell in _present(cells))
        return pa.array(cells, pa.float64()).cast(pa.int64() if is_whole else pa.float64())
    if kinds == {"date", "datetime"}:
        midnight = datetime.time()
        cells = [
            datetime.datetime.combine(cell, midnight) if _kind(cell) == "date" else cell
            for cell in cells
        ]
    elif len(kinds) > 1:
        cells = [None if cell is None else _as_text(cell) for cell in cells]
    return pa.array(cells)


def _without_missing(cells: list[Any]) -> list[Any]:
    import pyarrow as pa

    texts = pa.array([cell if isinstance(cell, str) else "x" for cell in cells], pa.string())
    missing = without_missing(texts).is_null().to_pylist()
    return [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]


def _present(cells: list[Any]) -> Iterator[Any]:
    return (cell for cell in cells if cell is not None)


def _kind(cell: Any) -> str:
    return "number" if type(cell) in (int, float) else type(cell).__name__


def _as_text(cell: Any) -> str:
    """A cell as Excel shows it: whole numbers without a point."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell.isoformat()) if hasattr(cell, "isoformat") else str(cell)
