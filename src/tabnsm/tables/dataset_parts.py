"""Parts of a dataset that are read by themselves: its files, and row groups of Parquet files."""

from __future__ import annotations

import os
from typing import Any


def can_be_parted(dataset: Any) -> bool:
    """Whether a pyarrow dataset is of files that other processes find, all of whose rows count."""
    import pyarrow.dataset as ds
    from pyarrow.fs import LocalFileSystem

    if type(dataset) is not ds.FileSystemDataset or getattr(dataset, "_scan_options", None):
        return False
    is_local = isinstance(dataset.filesystem, LocalFileSystem)
    return not is_local or all(map(os.path.isabs, dataset.files))


def pieces_of(dataset: Any) -> list[tuple[Any, int]]:
    """Files, or row groups of Parquet files, in the order of the rows, and how many each has."""
    import pyarrow.dataset as ds

    pieces: list[tuple[Any, int]] = []
    for fragment in dataset.get_fragments():
        if isinstance(fragment, ds.ParquetFileFragment):
            groups = fragment.split_by_row_group()
            pieces += [(group, sum(g.num_rows for g in group.row_groups)) for group in groups]
        else:
            pieces.append((fragment, fragment.count_rows()))
    return pieces


def join_pieces(dataset: Any, pieces: list[tuple[Any, int]]) -> Any:
    """A dataset of some of the pieces of another."""
    import pyarrow.dataset as ds

    fragments = [fragment for fragment, _ in pieces]
    return ds.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)
