"""The columns that all files of a dataset share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tabnsm.errors import InvalidDataError


def is_string(kind: Any) -> bool:
    """Whether an arrow type holds strings."""
    import pyarrow.types as pt

    return bool(pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view")


def common_schema(files: Sequence[str], kind: str) -> Any:
    """Names and types of the columns of all files; numbers take the wider type of several.

    Parameters
    ----------
    files : sequence of str
    kind : {"parquet", "ipc"}

    Raises
    ------
    InvalidDataError
        If a file cannot be read, has two columns of one name, lacks a column of the others, or
        has other types.
    """
    first = _read_schema(files[0], kind)
    fields = {field.name: field for field in first}
    for file in files[1:]:
        schema = _read_schema(file, kind)
        _check_names(files[0], list(fields), file, schema.names)
        for field in schema:
            if field.type != fields[field.name].type:
                fields[field.name] = _wider(fields[field.name], field, files[0], file)
    import pyarrow as pa

    return pa.schema(list(fields.values()))


def reject_nested(schema: Any) -> None:
    """Refuse columns with values inside values."""
    import pyarrow.types as pt

    nested = [field for field in schema if pt.is_nested(field.type)]
    if nested:
        raise InvalidDataError(
            f"A cell must hold one value, but the column {nested[0].name!r} of the dataset holds "
            f"{nested[0].type}. Flatten it into columns of their own, or drop it."
        )


def _read_schema(file: str, kind: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if kind == "parquet":
            schema = pq.read_schema(file)
        else:
            with pa.memory_map(file) as source:
                schema = pa.ipc.open_file(source).schema
    except (pa.ArrowException, OSError) as error:
        if kind == "ipc" and _is_stream(file):
            raise InvalidDataError(
                f"A dataset must have Arrow files, but {file} is an Arrow stream. Write it as a "
                "file, for example with pyarrow.feather.write_feather."
            ) from error
        reason = str(error).split("\n", 1)[0].rstrip(".")
        called = "Parquet" if kind == "parquet" else "Feather or Arrow"
        raise InvalidDataError(
            f"{file} is not a whole {called} file ({reason}). Get a fresh copy, or leave it out."
        ) from error
    twice = [name for name, count in Counter(schema.names).items() if count > 1]
    if twice:
        raise InvalidDataError(
            f"The columns of a dataset must have different names, but {file} has {twice[0]!r} more "
            "than once. Rename or drop one of them, and write the file again."
        )
    return schema


def _is_stream(file: str) -> bool:
    """Whether a file holds Arrow data in the format for streams."""
    import pyarrow as pa

    try:
        with pa.OSFile(file) as source, pa.ipc.open_stream(source):
            return True
    except (pa.ArrowException, OSError):
        return False


def partition_clash(
    files: Sequence[str], base: str, names: Sequence[str], error: Exception
) -> InvalidDataError:
    """The error where pyarrow cannot join columns with those of subfolders such as ``year=2024``.

    Parameters
    ----------
    files : sequence of str
    base : str
        The folder that they are in.
    names : sequence of str
        Columns in the files.
    error : Exception
        Of pyarrow.
    """
    for file in files:
        for folder in os.path.relpath(file, base).split(os.sep)[:-1]:
            name, sign, _ = folder.partition("=")
            if sign and name in names:
                return InvalidDataError(
                    "A column of a dataset must be in its files or in names of folders, not with "
                    f"two types in both, but {file} has a column {name!r} and is in the folder "
                    f"{folder!r}. Rename the folder, or write the file without the column."
                )
    reason = str(error).split("\n", 1)[0].rstrip(".")
    return InvalidDataError(
        f"A dataset must have files of the same columns, but pyarrow reports: {reason}. Write "
        "them with the same names and types."
    )


def _check_names(first: str, expected: list[str], file: str, names: list[str]) -> None:
    absent = [name for name in expected if name not in set(names)]
    more = [name for name in names if name not in set(expected)]
    if absent or more:
        lacking, having, name = (file, first, absent[0]) if absent else (first, file, more[0])
        raise InvalidDataError(
            f"The files of a dataset must have the same columns, but {lacking} has no column "
            f"{name!r}, which {having} has. Leave the file out, or write it with all columns."
        )


def _wider(one: Any, other: Any, first: str, file: str) -> Any:
    """A field that holds the values of both: of numbers the wider type."""
    import pyarrow as pa
    import pyarrow.types as pt

    numbers = [pt.is_integer(t) or pt.is_floating(t) for t in (one.type, other.type)]
    if all(numbers) and pt.is_integer(one.type) != pt.is_integer(other.type):
        return one.with_type(pa.float64())  # float32 would round large integers
    try:
        schemas = [pa.schema([one]), pa.schema([other.with_nullable(one.nullable)])]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidDataError(
            f"The files of a dataset must have the same types, but the column {one.name!r} holds "
            f"{one.type} in {first} and {other.type} in {file}. Write both with one type."
        ) from error
