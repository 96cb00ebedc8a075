"""Open a table file of any known kind, by its extension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm.files.columnar import ArrowFile, ParquetFile
from tabnsm.files.dataset_file import DatasetFile
from tabnsm.files.delimited import DelimitedFile
from tabnsm.files.excel import ExcelFile
from tabnsm.files.json_lines import JsonLinesFile
from tabnsm.files.table_file import TableFile

_KINDS: dict[str, Callable[[Path], TableFile]] = {
    ".csv": DelimitedFile,
    ".tsv": DelimitedFile,
    ".csv.gz": DelimitedFile,
    ".tsv.gz": DelimitedFile,
    ".parquet": ParquetFile,
    ".feather": ArrowFile,
    ".arrow": ArrowFile,
    ".jsonl": JsonLinesFile,
    ".ndjson": JsonLinesFile,
    ".jsonl.gz": JsonLinesFile,
    ".ndjson.gz": JsonLinesFile,
    ".xlsx": ExcelFile,
}
# What to do about endings that people have tables in, but that are not read.
_OTHER_KINDS = {
    ".json": "Write one object per line to a .jsonl file; with pandas, "
    "df.to_json('table.jsonl', orient='records', lines=True).",
    ".bz2": "Of compressed files only .gz is read: decompress it with bunzip2.",
    ".xz": "Of compressed files only .gz is read: decompress it with unxz.",
    ".zst": "Of compressed files only .gz is read: decompress it with unzstd.",
    ".zip": "Of compressed files only .gz is read: unpack it with unzip and name the file in it.",
    ".xls": "Save it as .xlsx or .csv.",
    ".xlsm": "Save it as .xlsx or .csv.",
    ".ods": "Save it as .xlsx or .csv.",
}


def open_table(path: str | Path) -> TableFile:
    """Look at a table file without reading its rows.

    Parameters
    ----------
    path : str or Path
        A .csv, .tsv, .jsonl or .ndjson file, also with .gz, or a .parquet, .feather, .arrow or
        .xlsx file; or a folder or a pattern of .parquet, .feather or .arrow files.

    Returns
    -------
    TableFile
        With the column names, `read` and `batches`.

    Raises
    ------
    InvalidDataError
        If the file is missing, empty, of an unknown kind, or not what its extension says.
    MissingExtraError
        If it is an .xlsx file and the extra "excel" is not installed.
    """
    path = Path(path)
    if path.is_dir() or (not path.exists() and has_magic(str(path))):
        return DatasetFile(path)
    if not path.exists():
        raise InvalidDataError(f"A table must be an existing file, but there is no file {path}.")
    kind = next((k for ending, k in _KINDS.items() if path.name.lower().endswith(ending)), None)
    if kind is None:
        raise InvalidDataError(
            f"A table file must end in {', '.join(_KINDS)}, got {path}. "
            + _OTHER_KINDS.get(path.suffix.lower(), "Rename it or convert it to one of these.")
        )
    try:
        if path.stat().st_size == 0:
            raise InvalidDataError(f"A table must have a header and rows, but {path} is empty.")
        return kind(path)
    except OSError as error:
        raise InvalidDataError(f"{path} cannot be read: {error}.") from error


def read_table(path: str | Path, *, columns: Sequence[str] | None = None) -> Any:
    r"""Read a table file.

    CSV and TSV columns are all read as strings, and the cells that ``pandas.read_csv`` takes
    for missing as nulls: the table encoder finds numbers, dates and categories itself. Columns of
    the other kinds of files keep their types.

    Parameters
    ----------
    path : str or Path
        As for `open_table`.
    columns : sequence of str or None
        Columns to read; None for all.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "loans.csv")
    ...     _ = path.write_text("amount;rate\n1000;7,5\n2000;NA\n")
    ...     read_table(path).to_pydict()
    {'amount': ['1000', '2000'], 'rate': ['7.5', None]}
    """
    return open_table(path).read(columns)
