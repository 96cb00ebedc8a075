"""Shard: the encoded rows of one process, and what it must know of all others."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import torch

from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures
from tabnsm.distributed.encoding import ClusterTable
from tabnsm.training.exchange import pack_fit, unpack_fit
from tabnsm.training.loop import WholeRows, mean_one
from tabnsm.training.objective import TargetLoss
from tabnsm.training.prepare import PreparedFit
from tabnsm.training.rows import TrainingData


@dataclass(frozen=True)
class Shard:
    """A part of the rows of a fit.

    Parameters
    ----------
    prepared : PreparedFit
        With the rows of this part; it may have none. Weights of training rows have mean 1 over
        all parts.
    whole : WholeRows
        About the training rows of all parts.
    losses : tuple of str
        Of each target, which the training rows of all parts may decide.
    """

    prepared: PreparedFit
    whole: WholeRows
    losses: tuple[TargetLoss, ...]

    @classmethod
    def whole_fit(cls, prepared: PreparedFit) -> Shard:
        """All rows as one shard, for `cut`."""
        data, config = prepared.data, prepared.options.objective
        standard = torch.from_numpy(prepared.target.standardize(data.train_target))
        if data.train_weight is not None:
            data = replace(data, train_weight=mean_one(data.train_weight))
        losses = config.losses_of(data.train_target)
        return cls(replace(prepared, data=data), WholeRows.of(standard), losses)

    def cut(self, rank: int, size: int) -> Shard:
        """The rows of one of `size` processes: neighbours, so that a file is read in order."""
        data = self.prepared.data
        parts: dict[str, Any] = {}
        for name in ("train", "validation"):
            table: EncodedTable = getattr(data, name)
            rows = _rows_of(table, rank, size)
            parts[name] = _cut(table, rows)
            parts[f"{name}_target"] = getattr(data, f"{name}_target")[rows]
            weight = getattr(data, f"{name}_weight")
            parts[f"{name}_weight"] = None if weight is None else weight[rows]
        return replace(self, prepared=replace(self.prepared, data=TrainingData(**parts)))


def write_shard(shard: Shard, file: IO[bytes]) -> None:
    """Write a shard to a stream: its arrays, then JSON that says where they are, and its length."""
    with tempfile.TemporaryFile(prefix="tabnsm-") as arrays:
        meta = pack_fit(shard.prepared, arrays)
        meta["whole"] = [shard.whole.n_rows, shard.whole.bounds, shard.losses]
        arrays.seek(0)
        shutil.copyfileobj(arrays, file, 2**24)
    text = json.dumps(meta).encode()
    file.write(text + len(text).to_bytes(8, "little"))


def read_shard(content: bytearray) -> Shard:
    """The shard that `write_shard` wrote, in the memory that is given."""
    end = len(content) - 8
    length = int.from_bytes(content[end:], "little")
    meta = json.loads(bytes(content[end - length : end]))
    n_rows, bounds, losses = meta.pop("whole")
    whole = WholeRows(n_rows, [(low, high) for low, high in bounds])
    return Shard(unpack_fit(content, meta), whole, tuple(losses))


def _rows_of(table: EncodedTable, rank: int, size: int) -> slice:
    if isinstance(table, ClusterTable):
        return slice(*np.searchsorted(table.rows, table.source.span(rank, size)))
    return slice(table.n_rows * rank // size, table.n_rows * (rank + 1) // size)


def _cut(table: EncodedTable, rows: slice) -> EncodedTable:
    """Some rows of a table with the texts that they have; those of a cluster have no more."""
    texts = []
    for text in table.texts:
        used, index = np.unique(text.index[rows].numpy(), return_inverse=True)
        values = text.values[torch.from_numpy(used)]
        texts.append(TextFeatures(values, torch.from_numpy(index)))
    if isinstance(table, ClusterTable):
        return EncodedTable(torch.empty(len(table.rows[rows]), 0), tuple(texts))
    return EncodedTable(table.dense[rows], tuple(texts))
