"""Which files may be written: never one that is read, and none with the ending of another kind."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tabnsm.errors import InvalidDataError, InvalidOptionError, warn

MODEL_ENDING = ".safetensors"
# Also of tables that are not read: none of them is a model or a list of options.
# fmt: off
_TABLE_ENDINGS = (
    ".csv", ".tsv", ".txt", ".parquet", ".feather", ".arrow", ".jsonl", ".ndjson",
    ".xlsx", ".xlsm", ".xls", ".ods",
)
# fmt: on
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zip", ".zst")


def check_output(path: str | Path) -> Path:
    """Check, before long work, that a file can be written.

    Raises `InvalidDataError` if its folder does not exist or cannot be written to, or the path is a
    folder or a device; a file that exists will be replaced.
    """
    path = Path(path)
    if path.is_dir():
        raise InvalidDataError(f"The output must be a file, but {path} is a folder. Name a file.")
    if path.exists() and not path.is_file():
        raise InvalidDataError(
            f"The output must be a regular file, but {path} is a device or a pipe. Name a file."
        )
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


def check_not_read(
    out: str | Path, inputs: Mapping[str, str | Path | None], what: str = "--out"
) -> None:
    """Refuse an output that would replace a file which the same command reads or writes.

    Nor may it become a file of a dataset that the command reads. `inputs` are the other files,
    folders and patterns, by the argument that names them; links and other spellings are followed.

    Examples
    --------
    >>> check_not_read("model.safetensors", {"DATA": "./model.safetensors"})
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: --out must be a file of its own, but model.safetensors is \
the same file as DATA (model.safetensors), which would be replaced. Choose another name.
    """
    for name, path in inputs.items():
        if path is not None and is_same_file(out, path):
            raise InvalidOptionError(
                f"{what} must be a file of its own, but {Path(out)} is the same file as {name} "
                f"({Path(path)}), which would be replaced. Choose another name."
            )
        if path is not None and _becomes_part(out, path):
            raise InvalidOptionError(
                f"{what} must not be a file of a dataset that is read, but {Path(out)} would be "
                f"one of {name} ({Path(path)}). Choose another folder."
            )


def _becomes_part(out: str | Path, dataset: str | Path) -> bool:
    """Whether a new file would be found as one of a dataset, a folder or a pattern."""
    from tabnsm.tables.dataset import FORMATS, is_hidden

    place = Path(out).resolve()
    if place.suffix.lower() not in FORMATS or os.path.isfile(dataset):
        return False
    folder = Path(dataset).expanduser().resolve()
    if folder.is_dir():
        return place.is_relative_to(folder) and not is_hidden(place, folder)
    return _matches(place.parts, folder.parts)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether glob finds a path by a pattern; ``**`` is any number of folders."""
    if not pattern or not parts:
        return not parts and all(part == "**" for part in pattern)
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or _matches(parts[1:], pattern)
    return fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def is_same_file(first: str | Path, second: str | Path) -> bool:
    """Whether two paths are one file: links, relative paths and spellings are followed.

    Two files of which neither exists yet are also one if only the case of letters differs, as they
    would be where the file system ignores it.

    Examples
    --------
    >>> is_same_file("no-such-file.json", "./No-Such-File.json")
    True
    >>> is_same_file("no-such-file.json", ".")
    False
    """
    if os.path.exists(first) and os.path.exists(second):
        return os.path.samefile(first, second)
    if os.path.exists(first) or os.path.exists(second):
        return False
    return str(Path(first).resolve()).casefold() == str(Path(second).resolve()).casefold()


def check_model_ending(path: str | Path) -> None:
    """Refuse the ending of a table, or of a list of options, for a model.

    Endings that are not known are fine.

    Examples
    --------
    >>> check_model_ending("price.safetensors")
    >>> check_model_ending("sales.csv.gz")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: A model must be saved to a file that ends in .safetensors, \
got sales.csv.gz, which is the name of a table. Choose another name.
    """
    if has_table_ending(path) or Path(path).suffix.lower() == ".json":
        kind = "a table" if has_table_ending(path) else "a JSON file"
        raise InvalidOptionError(
            f"A model must be saved to a file that ends in {MODEL_ENDING}, got {path}, which is "
            f"the name of {kind}. Choose another name."
        )


def check_model_output(path: str | Path) -> None:
    """Check, before training, that a model can be saved; warn of an unusual ending."""
    check_output(path)
    check_model_ending(path)
    if Path(path).suffix.lower() != MODEL_ENDING:
        warn(
            f"{path} does not end in {MODEL_ENDING}. The model is saved under this name all the "
            f"same, as a safetensors file; choose a name with {MODEL_ENDING} if other programs "
            "are to recognise it."
        )


def has_table_ending(path: str | Path) -> bool:
    """Whether a file name ends like a table, compressed or not.

    Examples
    --------
    >>> has_table_ending("a.CSV.gz"), has_table_ending("a.safetensors")
    (True, False)
    """
    name = Path(path).name.lower()
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression)
    return name.endswith(_TABLE_ENDINGS)
