"""Group: what the processes of one training send each other."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor


class Group:
    """The processes that train one network together, or this one alone.

    Sums are the same in all of them, bit for bit, so that all decide alike.

    Parameters
    ----------
    device : torch.device
        Where tensors must be to be sent: a GPU's with NCCL, the CPU with Gloo.

    Attributes
    ----------
    rank, size : int

    Examples
    --------
    >>> Group(torch.device("cpu")).sum(torch.tensor([2.0]))
    tensor([2.])
    """

    def __init__(self, device: torch.device) -> None:
        is_one_of_many = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if is_one_of_many else 0
        self.size = dist.get_world_size() if is_one_of_many else 1
        self.device = device

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the processes, on the CPU."""
        if self.size == 1:
            return values
        sent = values.to(self.device, copy=True)
        dist.all_reduce(sent)
        return sent.cpu()

    def max(self, values: Tensor) -> Tensor:
        """Largest of each value over the processes, on the CPU."""
        if self.size == 1:
            return values
        sent = values.to(self.device, copy=True)
        dist.all_reduce(sent, dist.ReduceOp.MAX)
        return sent.cpu()

    def any(self, flag: bool) -> bool:
        """Whether it holds in one of the processes."""
        return bool(self.sum(torch.tensor([int(flag)])).item())

    def of_each(self, value: float) -> Tensor:
        """A number of every process, float64, shape (size,)."""
        values = torch.zeros(self.size, dtype=torch.float64)
        values[self.rank] = value
        return self.sum(values)
