"""Encode a dataset on a cluster: tasks fit the encoder, and each worker encodes rows of its own."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tabnsm.columns import EncodedTable, EncoderConfig, TableEncoder
from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.shared import (
    CrossFitted,
    FitInput,
    Floats,
    Rows,
    Run,
    SharedEncoder,
    dense_state,
    encode_dense,
)
from tabnsm.distributed.tasks import RayTasks
from tabnsm.errors import warn
from tabnsm.tables import Table
from tabnsm.tables.dataset_parts import can_be_parted
from tabnsm.target.residual import LARGE_CELLS
from tabnsm.text.embedding import SecondsLeft
from tabnsm.training.mapped import encode_mapped, write_by_row
from tabnsm.training.pass_progress import PassProgress
from tabnsm.training.prepare import FitRows
from tabnsm.training.rows import TrainingData
from tabnsm.work_folder import WorkFolder

_TASK_CELLS = 2**24
"""Encoded values that a task sends back at most."""
_SHARES_PER_WORKER = 4


@dataclass(frozen=True, eq=False)
class RowSource:
    """The rows of a fit in their files, and what encodes them but for text.

    Parameters
    ----------
    table : Table
        Of a dataset that can be parted.
    state : tuple
        From `dense_state`.
    means : CrossFitted
    n_dense : int
        Features but text.
    held_out : ndarray of bool or None
        Rows to validate on; None if others are given.
    run : callable
        Runs tasks.
    """

    table: Table
    state: tuple[dict[str, Tensor], dict[str, Any]]
    means: CrossFitted
    n_dense: int
    held_out: np.ndarray | None
    run: Run

    def span(self, rank: int, size: int) -> tuple[int, int]:
        """First row of one of `size` workers, and the first of the next: neighbours in files."""
        n_rows = self.table.n_rows
        return n_rows * rank // size, n_rows * (rank + 1) // size

    def of_worker(self, rank: int, size: int) -> WorkerRows:
        """What a worker needs to encode its rows, of which there may be none."""
        start, stop = self.span(rank, size)
        first, last = np.searchsorted(self.means.rows, (start, stop))
        return WorkerRows(
            self.table.part(start, stop) if start < stop else None,
            start,
            None if self.held_out is None else self.held_out[start:stop],
            self.state,
            CrossFitted(self.means.rows[first:last], self.means.values[first:last]),
            self.n_dense,
        )

    def fetch(self, rows: Rows, out: Floats) -> None:
        """Write the features but text of some rows, ascending, by tasks that read their files."""
        size = max(_TASK_CELLS // max(self.n_dense, 1), 1)
        given = (self.state, self.means)
        shares = []
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            part = self.table.part(int(some[0]), int(some[-1]) + 1)
            shares.append((part.take(some - some[0]), some))
        at = 0
        for k in range(0, len(shares), 8):  # a few at a time, which are in memory
            for dense in self.run("Encoding rows", _encode_share, given, shares[k : k + 8]):
                out[at : at + len(dense)] = dense
                at += len(dense)


class ClusterTable(EncodedTable):
    """Encoded rows that workers have; this process fetches those that it looks at.

    Parameters
    ----------
    source : RowSource
    rows : ndarray of int64
        Their numbers in the table of the fit, ascending.
    texts : tuple of TextFeatures
        Of these rows.
    folder : WorkFolder
        Where rows that were fetched are kept.
    name : str
        Of the file for them.
    """

    source: RowSource
    rows: Rows
    _folder: WorkFolder
    _name: str
    _lock: threading.Lock
    _fetched: Tensor | None

    def __init__(
        self,
        source: RowSource,
        rows: Rows,
        texts: tuple[TextFeatures, ...],
        folder: WorkFolder,
        name: str,
    ) -> None:
        self.__dict__.update(source=source, rows=rows, texts=texts, is_mapped=False)
        self.__dict__.update(_folder=folder, _name=name, _lock=threading.Lock(), _fetched=None)

    @property
    def dense(self) -> Tensor:
        """All features but text, fetched when they are asked for."""
        with self._lock:
            if self._fetched is None:
                array = self._folder.empty(f"{self._name}.fetched", (self.n_rows, self._n_dense))
                self.source.fetch(self.rows, array)
                self.__dict__["_fetched"] = torch.from_numpy(array)
            assert self._fetched is not None
            return self._fetched

    @property
    def identity(self) -> Tensor:
        """Which rows these are: what they hold is decided by the encoder and the targets."""
        return torch.from_numpy(self.rows)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Number of features, text included."""
        return self._n_dense + sum(text.values.shape[1] for text in self.texts)

    def gather(self, rows: Tensor) -> Tensor:
        """Full feature rows for a batch."""
        taken = self.take(rows)
        return taken.gather(torch.arange(len(rows)))

    def take(self, rows: Tensor) -> EncodedTable:
        """The same table restricted to some rows."""
        texts = tuple(replace(text, index=text.index[rows]) for text in self.texts)
        return EncodedTable(self._dense_of(rows), texts)

    @property
    def _n_dense(self) -> int:
        return self.source.n_dense

    def _dense_of(self, rows: Tensor) -> Tensor:
        """Of a large table, a sample is fetched by itself, and what is read in order as a whole."""
        is_large = self.n_rows * self._n_dense > LARGE_CELLS
        is_sample = bool((rows.diff() > 1).any()) and len(rows) < self.n_rows
        if self._fetched is not None or not (is_large and is_sample):
            return self.dense[rows]
        chosen, back = np.unique(rows.numpy(), return_inverse=True)
        array = np.empty((len(chosen), self._n_dense), dtype=np.float32)
        self.source.fetch(self.rows[chosen], array)
        return torch.from_numpy(array[back])


@dataclass(frozen=True, eq=False)
class WorkerRows:
    """The rows of one worker in their files, the first of which has the number `start`."""

    table: Table | None
    start: int
    held_out: np.ndarray | None
    state: tuple[dict[str, Tensor], dict[str, Any]]
    means: CrossFitted
    n_dense: int

    def encode(self, data: TrainingData, folder: WorkFolder) -> TrainingData:
        """The same with features but text, in files of a folder of this machine."""
        masks: dict[str, np.ndarray | None] = {"train": None}
        if self.held_out is not None:
            masks = {"train": ~self.held_out, "validation": self.held_out}
        if self.table is None:
            parts = {name: EncodedTable(torch.empty(0, self.n_dense)) for name in masks}
        else:
            folder.check_space(2 * 4 * self.table.n_rows * self.n_dense)
            numbers = np.arange(self.start, self.start + self.table.n_rows)
            dense = encode_dense(
                self.state,
                self.table,
                numbers,
                self.means,
                lambda shape: np.asarray(folder.empty("columns", shape[::-1]).T),
            )
            parts = write_by_row(EncodedTable(torch.from_numpy(dense)), masks, folder)
            folder.remove("columns")
        own: dict[str, Any] = {
            name: replace(table, texts=getattr(data, name).texts) for name, table in parts.items()
        }
        return replace(data, **own)


class ClusterEncoding:
    """Encodes the datasets of fits by tasks of a cluster, in place of `encode_mapped`.

    Parameters
    ----------
    ray : module
    num_workers : int
    cpus : float
        Cores that a task asks for.
    """

    def __init__(self, ray: Any, num_workers: int, cpus: float) -> None:
        self.ray, self.num_workers, self.cpus = ray, num_workers, cpus

    def __call__(
        self,
        rows: FitRows,
        folder: WorkFolder,
        config: EncoderConfig,
        seconds_left: SecondsLeft | None,
    ) -> tuple[TableEncoder, TrainingData]:
        """The encoder of one machine, and rows that are encoded where they are needed."""
        assert rows.table.dataset is not None
        if not can_be_parted(rows.table.dataset.dataset):
            return encode_mapped(rows, folder, config, seconds_left)
        run = RayTasks(self.ray, self.num_workers, self.cpus, PassProgress(config.verbose))
        fit_rows = np.flatnonzero(~rows.held_out)
        # A table of its own, since columns that this process keeps are not to be sent.
        table = rows.table.without([])
        given = FitInput(table, fit_rows, np.array(rows.target))
        shared = SharedEncoder(config, given, run, _SHARES_PER_WORKER * self.num_workers)
        texts, means = shared.fit(seconds_left)
        for message in shared.suspects():
            warn(message)
        folder.is_resumed = True  # so that columns are not looked at again
        encoder = TableEncoder.from_state(*shared.to_state(), config.text_encoder)
        source = RowSource(
            table,
            dense_state(encoder),
            means,
            encoder.target_mean_features.stop,
            rows.held_out if rows.given is None else None,
            run,
        )

        def part(name: str, chosen: Rows) -> ClusterTable:
            own = tuple(replace(text, index=text.index[chosen]) for text in texts)
            return ClusterTable(source, chosen, own, folder, name)

        train, weight = part("train", fit_rows), rows.weight
        if rows.given is not None:
            aside = WorkFolder(folder.path, prefix="given.")
            validation = encoder.transform(rows.given[0], aside)
            return encoder, TrainingData(
                train, rows.target, weight, validation, rows.given[1], None
            )
        held_out = np.flatnonzero(rows.held_out)
        return encoder, TrainingData(
            train,
            rows.target[fit_rows],
            None if weight is None else weight[fit_rows],
            part("validation", held_out),
            rows.target[held_out],
            None if weight is None else weight[held_out],
        )


def _encode_share(
    given: tuple[tuple[dict[str, Tensor], dict[str, Any]], CrossFitted], share: tuple[Table, Rows]
) -> Floats:
    (state, means), (table, rows) = given, share
    return encode_dense(state, table, rows, means, lambda shape: np.empty(shape, np.float32))
