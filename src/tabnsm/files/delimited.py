"""CSV and TSV as people have them: any encoding, any common delimiter, quotes, missing cells."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError, warn
from tabnsm.files.encoding import BLOCK_BYTES, find_encoding, is_gzipped, open_bytes, open_text
from tabnsm.files.table_file import TableFile

DELIMITERS = (",", ";", "\t", "|")

# The strings that pandas.read_csv takes for missing, so that a model fitted on a DataFrame and
# one fitted on the file are the same.
# fmt: off
MISSING = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
]
# fmt: on
_SIGN = r"[+\-\x{2212}]?"
_SPACE = r"[ \x{A0}\x{2009}\x{202F}]"
# With a decimal comma, thousands may be set apart by points, apostrophes or spaces.
_GROUPED = rf"\d{{1,3}}(?:(?:\.\d{{3}})+|(?:['\x{{2019}}]\d{{3}})+|(?:{_SPACE}\d{{3}})+)"
_DECIMAL_COMMA = rf"^{_SIGN}(?:\d*|{_GROUPED}),\d+(?:[eE][+-]?\d+)?$"
_GROUPED_BY_POINTS = rf"^{_SIGN}\d{{1,3}}(?:\.\d{{3}})+,\d+$"
_GROUPED_OR_POINT = rf"^{_SIGN}\d{{1,3}}\.\d{{3}}$"

# Lines that an error message names.
_MAX_LINES = 3
_UNREADABLE = (csv.Error, UnicodeError, EOFError, zlib.error, gzip.BadGzipFile)


class DelimitedFile(TableFile):
    """A CSV or TSV file, gzipped or not; all columns are strings.

    The delimiter is found from the header. With ';' as delimiter, a cell such as "1,5", "-1,6e-05"
    or "1.234,5" is a number with a decimal comma; the rule looks at one cell at a time, so that a
    row means the same in any file. Other ways to write numbers, such as "45 %", stay strings, which
    the table encoder reads column by column.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._encoding = find_encoding(path)
            header = _find_header(path, self._encoding)
            names, self._delimiter, self._skip_rows, self._has_rows = header
        except _UNREADABLE as error:
            raise InvalidDataError(f"{path} cannot be read as a table ({error}).") from error
        super().__init__(path, name_blanks(path, names))

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.csv

        if not self._has_rows:
            return
        # The last column is always read: it is where an unclosed quote hides.
        last_name, last_cell = self.names[-1], ""
        wanted = list(dict.fromkeys([*columns, last_name]))
        compression = "gzip" if is_gzipped(self.path) else None
        try:
            with (
                pa.input_stream(self.path, compression=compression) as source,
                pyarrow.csv.open_csv(source, *self._arrow_options(wanted)) as reader,
            ):
                for batch in reader:
                    if batch.num_rows:
                        last_cell = batch.column(last_name)[-1].as_py()
                        yield batch.select(columns) if as_written else self._clean(batch, columns)
        except (pa.ArrowException, UnicodeError, OSError) as error:
            raise self._explain(error) from error
        if "\n" in last_cell and not self._ends_with_quote():
            raise self._unclosed_quote()

    def _arrow_options(self, wanted: list[str]) -> tuple[Any, Any, Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return (
            arrow_csv.ReadOptions(
                column_names=self.names,
                skip_rows_after_names=self._skip_rows,
                block_size=BLOCK_BYTES,
                encoding="utf8" if self._encoding.startswith("utf-8") else self._encoding,
            ),
            arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )

    def _clean(self, batch: Any, columns: list[str]) -> Any:
        import pyarrow as pa

        cleaned = [without_missing(batch.column(name)) for name in columns]
        if self._delimiter == ";":
            cleaned = [
                self._with_point(name, cells) for name, cells in zip(columns, cleaned, strict=True)
            ]
        return pa.RecordBatch.from_arrays(cleaned, names=columns)

    def _with_point(self, name: str, cells: Any) -> Any:
        """Decimal commas as points, cell by cell."""
        import pyarrow.compute as pc

        trimmed = pc.utf8_trim_whitespace(cells)
        is_number = pc.match_substring_regex(trimmed, pattern=_DECIMAL_COMMA)
        if not pc.any(is_number).as_py():
            return cells
        self._warn_of_two_styles(name, trimmed)
        plain = pc.replace_substring_regex(trimmed, pattern=r"[^\d,eE+\-\x{2212}]", replacement="")
        for old, new in ((",", "."), ("\N{MINUS SIGN}", "-")):
            plain = pc.replace_substring(plain, pattern=old, replacement=new)
        return pc.if_else(is_number, plain, cells)

    def _warn_of_two_styles(self, name: str, trimmed: Any) -> None:
        """Where "1.234,5" is 1234.5, "1.234" may be 1234; a cell alone does not say."""
        import pyarrow.compute as pc

        found = []
        for pattern in (_GROUPED_BY_POINTS, _GROUPED_OR_POINT):
            matches = trimmed.filter(pc.match_substring_regex(trimmed, pattern=pattern))
            if not len(matches):
                return
            found.append(matches[0].as_py())
        warn(
            f"Column {name!r} of {self.path} has numbers such as {found[0]!r}, with points between "
            f"thousands, beside such as {found[1]!r}, whose point was read as a decimal one. If it "
            "sets thousands apart, write these numbers without it."
        )

    def _explain(self, error: Exception) -> InvalidDataError:
        lines = self._ragged_lines()
        if lines:
            named = ", ".join(f"line {line} has {found}" for line, found in lines[:_MAX_LINES])
            more = " and so on" if len(lines) > _MAX_LINES else ""
            return InvalidDataError(
                f"Every row must have as many cells as the header of {self.path} "
                f"({len(self.names)}), but {named}{more}. "
                f"Put quotes around cells that contain {self._delimiter!r}, or remove these rows."
            )
        if "straddl" in str(error):
            return _overlong(self.path)
        reason = str(error).split("\n", 1)[0].rstrip(".")
        return InvalidDataError(f"{self.path} cannot be read as a table ({reason}).")

    def _ragged_lines(self) -> list[tuple[int, int]]:
        """Line and number of cells of the first rows that differ from the header."""
        found = []
        with (
            suppress(*_UNREADABLE),
            _records(self.path, self._encoding, self._delimiter) as records,
        ):
            for line, row in records:
                if len(row) != len(self.names):
                    found.append((line, len(row)))
                if len(found) > _MAX_LINES:
                    break
        return found

    def _ends_with_quote(self) -> bool:
        tail = b""
        with open_bytes(self.path) as stream:
            while block := stream.read(BLOCK_BYTES):
                tail = (tail + block)[-64:]
        return tail.rstrip(b"\r\n\t \0").endswith(b'"')

    def _unclosed_quote(self) -> InvalidDataError:
        with _records(self.path, self._encoding, self._delimiter) as records:
            start = max(line for line, _ in records)
        return InvalidDataError(
            f"Quotes must be closed, but one that opens in the row of line {start} of {self.path} "
            "is not. Close it, or double quotes that belong to the text."
        )


@contextmanager
def _records(
    path: Path, encoding: str, delimiter: str
) -> Iterator[Iterator[tuple[int, list[str]]]]:
    """Slow but exact: the first line of each record that is not blank, and its cells."""

    def numbered(rows: Any) -> Iterator[tuple[int, list[str]]]:
        line = 1
        for row in rows:
            if row:
                yield line, row
            line = rows.line_num + 1

    limit = csv.field_size_limit(BLOCK_BYTES)
    try:
        with open_text(path, encoding) as stream:
            yield numbered(csv.reader(stream, delimiter=delimiter))
    finally:
        csv.field_size_limit(limit)


def _find_header(path: Path, encoding: str) -> tuple[list[str], str, int, bool]:
    """Names, delimiter, rows to skip before the first row of values, and whether there is one."""
    found: list[tuple[bool, int, list[str], str, int]] = []
    for delimiter in DELIMITERS:
        with _records(path, encoding, delimiter) as records:
            line, names = next(records, (0, []))
            if not names:
                raise InvalidDataError(f"A table must have a header and rows, but {path} is blank.")
            try:
                _, following = next(records, (0, []))
            except csv.Error as error:
                raise _overlong(path) from error
        # Text in a header may have commas; the true delimiter also splits the next row.
        splits_both = len(names) > 1 and len(following) == len(names)
        # Before the header there are but blank lines, so its line is its row.
        found.append((splits_both, len(names), names, delimiter, line))
    _, _, names, delimiter, skip_rows = max(found, key=lambda candidate: candidate[:2])
    return names, delimiter, skip_rows, bool(following)


def _overlong(path: Path) -> InvalidDataError:
    return InvalidDataError(
        f"A row of {path} must be shorter than {BLOCK_BYTES >> 20} MB, but one is not. "
        "Look for a quote that is never closed."
    )


def name_blanks(path: Path, names: list[str]) -> list[str]:
    """Give names to blank columns, that no other column has."""
    named = []
    for position, name in enumerate(names, start=1):
        made = name if name.strip() else f"column_{position}"
        while made != name and made in names:
            made += "_"
        named.append(made)
    if named != names:
        made_up = [repr(new) for new, old in zip(named, names, strict=True) if new != old]
        warn(f"{path} has columns without a name, which are called {', '.join(made_up[:5])}.")
    return named


def without_missing(cells: Any) -> Any:
    """Strings with nulls for those that stand for a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(pc.utf8_trim_whitespace(cells), value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)
