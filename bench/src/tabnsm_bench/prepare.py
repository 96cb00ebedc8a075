"""From a table and a run's options to the three parts that a method sees."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.columns.table_encoder import TableEncoder
from tabnsm.options import resolve_options
from tabnsm.tables.table_input import Table
from tabnsm_bench.datasets import LoadedTable
from tabnsm_bench.protocol import Part, Prepared, RunSpec
from tabnsm_bench.splits import Split, paper_split, subset


def prepare(
    table: LoadedTable, spec: RunSpec, *, encode: bool = True
) -> tuple[Prepared, Split, list[str]]:
    """Sample and split the table, and encode it with statistics of the training rows.

    Parameters
    ----------
    table : LoadedTable
        The table.
    spec : RunSpec
        The run.
    encode : bool
        False leaves the arrays without columns, for methods that take frames.

    Returns
    -------
    tuple
        The parts, their row numbers, and a sentence per cut.
    """
    frame, target, notes = table.frame, table.target, []
    if spec.max_rows is not None and spec.max_rows < len(frame):
        notes.append(f"{spec.max_rows:,} of {len(frame):,} rows, drawn at random")
        rows = subset(len(frame), spec.max_rows, spec.split)
        frame, target = frame.iloc[rows].reset_index(drop=True), target[rows]
    n_columns = max(1, round(spec.feature_fraction * frame.shape[1]))
    if n_columns < frame.shape[1]:
        notes.append(f"{n_columns} of {frame.shape[1]} columns, drawn at random")
        frame = frame.iloc[:, subset(frame.shape[1], n_columns, spec.split)]
    split = paper_split(len(frame), spec.split)
    n_train = max(1, round(spec.sample_fraction * len(split.train)))
    if n_train < len(split.train):
        notes.append(f"{n_train:,} of {len(split.train):,} training rows, drawn at random")
        kept = split.train[subset(len(split.train), n_train, spec.split)]
        split = Split(kept, split.validation, split.test)
    return _parts(frame, target, split, spec.encoding if encode else None), split, notes


def _parts(frame: Any, target: NDArray[np.float64], split: Split, encoding: str | None) -> Prepared:
    started = time.perf_counter()
    roles = (split.train, split.validation, split.test)
    names: list[str] = []
    sizes: tuple[int, ...] = ()
    if encoding is None:
        arrays = [np.empty((len(rows), 0), dtype=np.float32) for rows in roles]
    else:
        encoder = TableEncoder(resolve_options({"preset": encoding}).encoder)
        encoded = encoder.fit_transform(Table.from_native(frame), fit_rows=split.train)
        arrays = [encoded.gather(torch.from_numpy(rows)).numpy() for rows in roles]
        names, sizes = encoder.feature_names, encoder.category_sizes
    train, validation, test = (Part(x, target[rows]) for x, rows in zip(arrays, roles, strict=True))
    frames = [frame.iloc[rows].reset_index(drop=True) for rows in roles]
    return Prepared(
        train,
        validation,
        test,
        category_sizes=tuple(sizes),
        feature_names=tuple(names),
        encode_seconds=0.0 if encoding is None else time.perf_counter() - started,
        train_frame=frames[0],
        validation_frame=frames[1],
        test_frame=frames[2],
    )
