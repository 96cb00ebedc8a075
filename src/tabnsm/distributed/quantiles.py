"""Difficulty bins of rows that lie in many processes, by histograms instead of the rows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tabnsm.distributed.group import Group

_HALF = 16
_N_CELLS = 2**_HALF


def global_bins(losses: Tensor, n_bins: int, group: Group) -> Tensor:
    """Quantile bin of each row's loss among the rows of all processes, 0 the easiest.

    Exactly `difficulty_bins` of all losses in one tensor. What is sent does not grow with the
    rows: a histogram of the upper 16 bits of the losses finds the cell of each quantile, one of
    the lower 16 bits within these cells the quantile itself.

    Parameters
    ----------
    losses : Tensor
        float32 loss of each row of this process, shape (n,), which may be empty. NaN is hardest.
    n_bins : int
    group : Group

    Returns
    -------
    Tensor
        int64, shape (n,).

    Examples
    --------
    >>> losses = torch.tensor([0.1, 5.0, 0.1, 0.7, 2.0, 0.9])
    >>> global_bins(losses, 3, Group(torch.device("cpu")))
    tensor([0, 2, 0, 1, 2, 1])
    """
    is_missing = losses.isnan()
    keys = _sortable(losses.detach().float().cpu())  # (n,)
    upper, lower = keys >> _HALF, keys & (_N_CELLS - 1)
    counts = group.sum(torch.bincount(upper, minlength=_N_CELLS))
    n_rows = int(counts.sum())
    # A row is in bin g or above if more than `ranks[g - 1]` losses are not greater than its own
    # or, what is the same, if it is greater than the loss of that rank.
    ranks = torch.tensor([-(-g * n_rows // n_bins) for g in range(1, n_bins)])
    if not len(ranks) or not n_rows:
        return torch.zeros(len(losses), dtype=torch.int64)
    ends = counts.cumsum(0)
    cells = torch.searchsorted(ends, ranks)  # (n_bins - 1,)
    before = ends[cells] - counts[cells]
    fine = torch.stack([torch.bincount(lower[upper == c], minlength=_N_CELLS) for c in cells])
    found = [
        int(torch.searchsorted(row.cumsum(0), rank))
        for row, rank in zip(group.sum(fine), ranks - before, strict=True)
    ]
    edges = (cells << _HALF) + torch.tensor(found)  # (n_bins - 1,), the quantiles' keys
    bins = torch.searchsorted(edges, keys)  # edges that are less than the key
    return bins.masked_fill(is_missing.cpu(), n_bins - 1)


def _sortable(losses: Tensor) -> Tensor:
    """Integers of 32 bits, in int64, in the order of these float32 numbers."""
    finite = losses.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf) + 0.0  # no -0
    bits = finite.view(torch.int32).long()
    return torch.where(bits >= 0, bits + 2**31, -bits - 1)
