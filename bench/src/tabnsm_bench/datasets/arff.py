"""ARFF, the text format of OpenML: a list of attributes, then rows of values."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tabnsm.errors import InvalidDataError

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+)\s+(?P<type>.+)""",
    re.IGNORECASE,
)
_NUMBERS = ("numeric", "real", "integer")


def read_arff(path: str | Path) -> Any:
    r"""Read a dense ARFF file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    pandas.DataFrame
        Numbers as float64 or int64, all else as strings; "?" is missing.

    Raises
    ------
    InvalidDataError
        If the file is sparse, cut off, or not ARFF.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "t.arff")
    ...     _ = path.write_text(
    ...         "@relation t\n@attribute 'a b' real\n@attribute c {x,'y z'}\n@data\n1,'y z'\n?,x\n"
    ...     )
    ...     read_arff(path).values.tolist()
    [[1.0, 'y z'], [nan, 'x']]
    """
    import pandas as pd

    path = Path(path)
    with path.open(encoding="utf-8", errors="replace", newline="") as stream:
        names, types = _read_header(path, stream)
        columns: list[list[str | None]] = [[] for _ in names]
        for number, row in enumerate(_rows(path, stream), start=1):
            if len(row) != len(names):
                raise InvalidDataError(
                    f"Each row must have {len(names)} values, but row {number} of {path} has "
                    f"{len(row)}. The file may be cut off: download it again."
                )
            for column, cell in zip(columns, row, strict=True):
                column.append(None if cell == "?" else cell)
    if not columns or not columns[0]:
        raise InvalidDataError(f"An ARFF file must have rows after @data, but {path} has none.")
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)))
    for name, kind in zip(names, types, strict=True):
        if kind in _NUMBERS:
            frame[name] = pd.to_numeric(frame[name])
    return frame


def _read_header(path: Path, stream: TextIO) -> tuple[list[str], list[str]]:
    names: list[str] = []
    types: list[str] = []
    for raw in stream:
        line = raw.strip()
        if line.lower().startswith("@data"):
            return names, types
        match = _ATTRIBUTE.match(line)
        if match:
            names.append(_unquoted(match["name"]))
            types.append(match["type"].strip().lower())
    raise InvalidDataError(
        f"An ARFF file must have a line @data, but {path} has none. It may be cut off, or of "
        "another kind."
    )


def _rows(path: Path, stream: TextIO) -> Iterator[list[str]]:
    lines = (line for line in stream if line.strip() and not line.startswith("%"))
    first = next(lines, None)
    if first is None:
        return
    if first.lstrip().startswith("{"):
        raise InvalidDataError(f"An ARFF file must be dense, but {path} is sparse. Use Parquet.")

    def again() -> Iterator[str]:
        yield first
        yield from lines

    quote = '"' if '"' in first and "'" not in first else "'"
    reader = csv.reader(again(), quotechar=quote, escapechar="\\", skipinitialspace=True)
    for row in reader:
        yield [cell.strip() for cell in row]


def _unquoted(name: str) -> str:
    if name[0] in "'\"" and name[-1] == name[0] and len(name) > 1:
        name = name[1:-1]
    return re.sub(r"\\(.)", r"\1", name)
