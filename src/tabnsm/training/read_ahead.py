"""Batches of a table that is in a file: the next ones are read from the disk meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from tabnsm.columns import EncodedTable

N_THREADS, N_AHEAD = 4, 8


@contextmanager
def read_ahead(table: EncodedTable, batches: Sequence[Tensor]) -> Iterator[Iterator[Tensor]]:
    """The batches, one after the other; of a table in a file, threads touch the next ones.

    Training alone would wait for the disk at every row of a batch.

    Parameters
    ----------
    table : EncodedTable
    batches : sequence of Tensor
        Rows of each batch.

    Examples
    --------
    >>> with read_ahead(EncodedTable(torch.zeros(4, 1)), [torch.tensor([0, 3])]) as batches:
    ...     list(batches)
    [tensor([0, 3])]
    """
    if not table.is_mapped:
        yield iter(batches)
        return
    pool = ThreadPoolExecutor(N_THREADS, "tabnsm-read", partial(torch.set_num_threads, 1))
    try:
        yield _in_turn(table, batches, pool)
    finally:
        pool.shutdown(cancel_futures=True)


def _in_turn(
    table: EncodedTable, batches: Sequence[Tensor], pool: ThreadPoolExecutor
) -> Iterator[Tensor]:
    for k, batch in enumerate(batches):
        if k + N_AHEAD < len(batches):
            pool.submit(table.gather, batches[k + N_AHEAD])
        yield batch
