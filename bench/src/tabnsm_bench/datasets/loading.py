"""From a name or a path to a table and its target."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError, MissingExtraError
from tabnsm_bench.datasets.catalog import (
    ALIASES,
    ENDINGS,
    all_descriptors,
    find_descriptor,
    find_file,
)
from tabnsm_bench.datasets.descriptor import Descriptor

_TEXT_ENDINGS = tuple(ending for ending in ENDINGS if "sv" in ending)


@dataclass(frozen=True)
class LoadedTable:
    """A table to learn from; rows without a target are gone.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns to learn from.
    target : ndarray of float64
        The column to predict.
    descriptor : Descriptor
        What is known of it.
    path : Path
        Its file.
    sha256 : str
        Of the file.
    n_file_rows : int
        Rows of the file, those without a target counted.

    Shape
    -----
    target : (n_rows,)
    """

    frame: Any
    target: NDArray[np.float64]
    descriptor: Descriptor
    path: Path
    sha256: str
    n_file_rows: int

    @property
    def partial(self) -> bool:
        """Whether this is less than the table of the paper."""
        known = self.descriptor
        expected = known.rows if known.paper else None
        return known.is_part or (expected is not None and self.n_file_rows < expected)


def load(
    name_or_path: str | Path, data_dir: str | Path | None = None, *, target: str | None = None
) -> LoadedTable:
    """Load a dataset.

    Parameters
    ----------
    name_or_path : str or Path
        Key of a descriptor, an abbreviation of the paper, the stem of a file in `data_dir`, or
        a path to a table file.
    data_dir : str, Path or None
        Folder of table files.
    target : str or None
        Column to predict; None takes the descriptor's.

    Returns
    -------
    LoadedTable

    Raises
    ------
    InvalidDataError
        If there is no such file, it is not the one that its sidecar describes, or it lacks the
        target.
    """
    if importlib.util.find_spec("pandas") is None:
        raise MissingExtraError("bench", "Benchmarks")
    descriptor, path = find(name_or_path, data_dir)
    wanted = target or descriptor.target
    if not wanted:
        raise InvalidDataError(
            f"{path} has no description, so the column to predict must be named. Add: --target"
        )
    digest = _sha256(path)
    if descriptor.sha256 not in (None, digest):
        raise InvalidDataError(
            f"{path} must have the SHA-256 of its sidecar, {descriptor.sha256}, got {digest}. "
            "It was changed: get it again, or remove the sidecar."
        )
    frame = _read(path)
    if descriptor.row_limit is not None:
        frame = frame.iloc[: descriptor.row_limit]
    n_file_rows = len(frame)
    if descriptor.reader == "nacc":
        from tabnsm_bench.datasets.nacc import read_nacc

        frame = read_nacc(frame)
    values = _target_values(frame, wanted, path)
    kept = np.isfinite(values)
    gone = [wanted, *(name for name in descriptor.drop if name in frame.columns and name != wanted)]
    frame = frame.drop(columns=gone).loc[kept].reset_index(drop=True)
    return LoadedTable(frame, values[kept], descriptor, path, digest, n_file_rows)


def find(name_or_path: str | Path, data_dir: str | Path | None) -> tuple[Descriptor, Path]:
    """Where a dataset's file is, and what is known of it.

    Parameters
    ----------
    name_or_path, data_dir
        As for `load`.

    Returns
    -------
    tuple of Descriptor and Path

    Raises
    ------
    InvalidDataError
        If there is no file, with the way to get it.
    """
    name = str(name_or_path)
    given = Path(name_or_path)
    if name.endswith(ENDINGS):
        path = given if given.is_file() or data_dir is None else Path(data_dir) / given
        if not path.is_file():
            raise InvalidDataError(f"A dataset must be an existing file, but there is no {path}.")
        known = all_descriptors(path.parent)
        return known.get(_stem(path)) or Descriptor(_stem(path), _stem(path), ""), path
    key = ALIASES.get(name, name)
    found = find_file(key, data_dir)
    if found is not None:
        known = all_descriptors(data_dir)
        return known.get(key) or Descriptor(key, key, ""), found
    raise InvalidDataError(_missing(find_descriptor(name, data_dir), data_dir))


def how_to_get(descriptor: Descriptor) -> str:
    """One line on how to obtain a dataset.

    Parameters
    ----------
    descriptor : Descriptor
        The dataset.

    Returns
    -------
    str

    Examples
    --------
    >>> how_to_get(find_descriptor("TO", None))
    'tabnsm bench download topo_2_1'
    """
    if not descriptor.sources:
        return "put its file in the data folder"
    if descriptor.sources[0].kind == "request":
        return f"request it at {descriptor.sources[0].page}, save as {descriptor.key}.csv"
    return f"tabnsm bench download {descriptor.key}"


def _missing(descriptor: Descriptor, data_dir: str | Path | None) -> str:
    message = (
        f"The dataset {descriptor.key!r} must be a file in the data folder, but there is no "
        f"{descriptor.key}{ENDINGS[0]} or {descriptor.key}{ENDINGS[1]} in {data_dir}. "
        f"To get it: {how_to_get(descriptor)}."
    )
    parts = [
        other.key
        for other in all_descriptors(data_dir).values()
        if other.is_part and other.paper == descriptor.paper and find_file(other.key, data_dir)
    ]
    return message + (f" A part of it is available: {', '.join(parts)}." if parts else "")


def _stem(path: Path) -> str:
    ending = next(ending for ending in sorted(ENDINGS, key=len)[::-1] if path.name.endswith(ending))
    return path.name.removesuffix(ending)


def _read(path: Path) -> Any:
    from tabnsm.files import read_table

    frame = read_table(path).to_pandas()
    if path.name.endswith(_TEXT_ENDINGS):
        return with_numbers(frame)
    return frame


def with_numbers(frame: Any) -> Any:
    """Turn columns of strings into numbers where all of their values are numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
        As read from a text file.

    Returns
    -------
    pandas.DataFrame
    """
    import pandas as pd

    converted = {}
    for name in frame.columns:
        try:
            converted[name] = pd.to_numeric(frame[name])
        except (ValueError, TypeError):
            converted[name] = frame[name]
    return pd.DataFrame(converted)


def _target_values(frame: Any, target: str, path: Path) -> NDArray[np.float64]:
    import pandas as pd

    if target not in frame.columns:
        shown = ", ".join(map(repr, frame.columns[:10]))
        raise InvalidDataError(
            f"The target must be a column of {path}, but there is no {target!r}. "
            f"Its columns: {shown}{', ...' if len(frame.columns) > 10 else ''}."
        )
    values = pd.to_numeric(frame[target], errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(values).any():
        raise InvalidDataError(f"The target {target!r} of {path} must have numbers, got none.")
    return np.asarray(values)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
