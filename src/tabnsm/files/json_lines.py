"""JSON lines: one object per line, whose keys are the columns."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError
from tabnsm.files.encoding import BLOCK_BYTES, open_bytes
from tabnsm.files.table_file import TableFile, _reject_nested

_UNREADABLE = (OSError, EOFError, zlib.error, gzip.BadGzipFile)
_BOM = b"\xef\xbb\xbf"


class JsonLinesFile(TableFile):
    """A .jsonl or .ndjson file, gzipped or not.

    A key that a line does not have is a null. Types are those that pyarrow finds; a column with
    more than one, such as numbers and strings, is read as strings. The whole file is read once to
    find them, so that a batch does not depend on where it was cut.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.types as pt

        self._types: dict[str, Any] = {}
        n_rows = 0
        mixed: set[str] = set()
        unquoted: set[str] = set()
        for line, block in _blocks(path):
            table, made_strings = _parse(path, line, block)
            n_rows += table.num_rows
            mixed |= made_strings
            for name, found in zip(table.schema.names, table.schema.types, strict=True):
                kind = pa.string() if name in made_strings else found
                self._types[name] = _common_type(self._types.get(name, pa.null()), kind)
                if pt.is_primitive(found) and not pt.is_temporal(found):
                    unquoted.add(name)
        if not self._types:
            raise InvalidDataError(f"A table must have columns and rows, but {path} has none.")
        super().__init__(path, list(self._types), n_rows)
        # What is not a string in the file, but is one in the table.
        self._mixed = mixed | {name for name in unquoted if pt.is_string(self._types[name])}

    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.types as pt

        types = {name: self._types[name] for name in columns}
        if as_written:
            types |= {name: pa.string() for name, t in types.items() if pt.is_temporal(t)}
        schema = pa.schema(types.items())
        _reject_nested(self.path, schema)
        mixed = self._mixed.intersection(columns)
        for line, block in _blocks(self.path):
            table, _ = _parse(self.path, line, block, schema, mixed)
            yield from table.select(columns).combine_chunks().to_batches()


def _common_type(first: Any, second: Any) -> Any:
    """Type that holds the values of both; nested ones stay nested, to be refused by name."""
    import pyarrow as pa
    import pyarrow.types as pt

    if first.equals(second) or pt.is_null(second) or pt.is_nested(first):
        return first
    if pt.is_null(first) or pt.is_nested(second):
        return second
    return pa.float64() if {first, second} == {pa.int64(), pa.float64()} else pa.string()


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Pieces of whole lines, each with the number of its first line."""
    line, rest = 1, b""
    try:
        with open_bytes(path) as stream:
            while read := stream.read(BLOCK_BYTES):
                if line == 1:
                    read = read.removeprefix(_BOM)
                block, newline, after = (rest + read).rpartition(b"\n")
                rest = after
                if block.strip():
                    yield line, block
                line += block.count(b"\n") + len(newline)
                if len(rest) > BLOCK_BYTES:
                    raise InvalidDataError(
                        f"A line of {path} must be shorter than {BLOCK_BYTES >> 20} MB, but line "
                        f"{line} is not. Write one object per line."
                    )
    except _UNREADABLE as error:
        raise InvalidDataError(f"{path} cannot be read: {error}.") from error
    if rest.strip():
        yield line, rest


def _parse(
    path: Path, line: int, block: bytes, schema: Any = None, mixed: Collection[str] = ()
) -> tuple[Any, set[str]]:
    """Rows of a block, and the columns of which values of several kinds were made strings."""
    import pyarrow as pa

    if not mixed:
        try:
            return _read_json(block, schema), set()
        except (pa.ArrowException, UnicodeError):
            pass  # said below, with the line
    rows = _load_rows(path, line, block)
    kinds = _kinds(rows)
    nested = {name for name, found in kinds.items() if "nested" in found}
    made = {name for name, found in kinds.items() if len(found) > 1} - nested | set(mixed)
    names = kinds.keys() if schema is None else schema.names
    text = "\n".join(json.dumps(_one_kind(row, names, made, nested)) for row in rows)
    try:
        return _read_json(text.encode(), schema), made
    except pa.ArrowException as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        raise InvalidDataError(f"{path} cannot be read as JSON lines ({reason}).") from error


def _read_json(block: bytes, schema: Any) -> Any:
    import pyarrow.json as pj

    table = pj.read_json(
        io.BytesIO(block),
        # One block: types of a second one would have to be those of the first.
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )
    table.validate(full=True)  # letters that are not UTF-8
    return table


def _load_rows(path: Path, line: int, block: bytes) -> list[dict[str, Any]]:
    """Slow but exact: each line as an object, or an error that names the line."""
    rows = []
    for number, text in enumerate(block.split(b"\n"), start=line):
        if not text.strip():
            continue
        try:
            row = json.loads(text, object_pairs_hook=_unique)
        except UnicodeDecodeError as error:
            raise InvalidDataError(
                f"JSON lines must be UTF-8, but line {number} of {path} is not. "
                "Save the file as UTF-8."
            ) from error
        except ValueError as error:
            raise _not_an_object(path, number, str(error)) from error
        if not isinstance(row, dict):
            raise _not_an_object(path, number, f"it is a {type(row).__name__}")
        rows.append(row)
    return rows


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} occurs twice")
    return row


def _not_an_object(path: Path, line: int, reason: str) -> InvalidDataError:
    return InvalidDataError(
        f'Each line of {path} must be a JSON object such as {{"a": 1, "b": "x"}}, but line {line} '
        f"is not ({reason}). With pandas, df.to_json(path, orient='records', lines=True) writes "
        "such a file."
    )


def _kinds(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    """Kinds of values of each column, without nulls."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            found = kinds.setdefault(name, set())
            if isinstance(value, dict | list):
                found.add("nested")
            elif value is not None:
                found.add("number" if type(value) in (int, float) else type(value).__name__)
    return kinds


def _one_kind(
    row: dict[str, Any], names: Collection[str], mixed: set[str], nested: set[str]
) -> dict[str, Any]:
    """A row whose mixed columns are strings, and whose nested ones are lists, to be refused."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        if name not in names:
            continue
        if name in nested:
            made[name] = [] if isinstance(value, dict | list) else None
        elif name in mixed and value is not None and not isinstance(value, str):
            made[name] = json.dumps(value)
        else:
            made[name] = value
    return made
