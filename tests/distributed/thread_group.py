"""Groups whose processes are threads of this one, for tests of what is sent among them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from tabnsm.distributed.group import Group

Result = TypeVar("Result")


class ThreadGroup(Group):
    def __init__(self, rank: int, size: int, barrier: threading.Barrier, sent: dict[int, Tensor]):
        super().__init__(torch.device("cpu"))
        self.rank, self.size = rank, size
        self.barrier, self.sent = barrier, sent

    def sum(self, values: Tensor) -> Tensor:
        return self._of_all(values).sum(0)

    def max(self, values: Tensor) -> Tensor:
        return self._of_all(values).amax(0)

    def _of_all(self, values: Tensor) -> Tensor:
        self.sent[self.rank] = values
        self.barrier.wait(30)
        values = torch.stack([self.sent[rank] for rank in range(self.size)])
        self.barrier.wait(30)
        return values


def in_group(size: int, function: Callable[[Group], Result]) -> list[Result]:
    """What a function returns in each of `size` processes."""
    barrier, sent = threading.Barrier(size), dict[int, Tensor]()
    groups = [ThreadGroup(rank, size, barrier, sent) for rank in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(function, groups))
