r"""Losses of several targets of a row, of which some may be missing.

With targets k = 1..t, each on a grid of its own, the loss of row i is the mean over the targets
:math:`T_i` that it has:

.. math::
    \ell_i = \frac{1}{|T_i|} \sum_{k \in T_i} \ell_k(\hat y_{ik}, y_{ik})

docs/paper-map.md derives this for GridLoss from one grid over all targets.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def fill_missing(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Zeros in place of missing targets and of what was predicted for them.

    Equal values have no loss, and a constant has no gradient.

    Parameters
    ----------
    prediction, target : Tensor, shape (N, t)
        The target is NaN where missing.

    Returns
    -------
    prediction, target : Tensor, shape (N, t)
    present : Tensor of bool, shape (N, t)

    Examples
    --------
    >>> fill_missing(torch.tensor([[1.0, 7.0]]), torch.tensor([[2.0, torch.nan]]))
    (tensor([[1., 0.]]), tensor([[2., 0.]]), tensor([[ True, False]]))
    """
    missing = target.isnan()
    return prediction.masked_fill(missing, 0.0), target.masked_fill(missing, 0.0), ~missing


def grids_of_targets(prediction: Tensor, target: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """Range of the grid of each target: the extrema of the entries of its column.

    Parameters
    ----------
    prediction, target : Tensor, shape (N, t)
        At least one row.
    present : Tensor of bool, shape (N, t)
        Entries that count. A target without any has the range 0 to 0.

    Returns
    -------
    lower, upper : Tensor, shape (t,)
        float64, detached; as `bounds` of `grid_loss` they give each column its own grid.

    Examples
    --------
    >>> prediction = torch.tensor([[0.0, 500.0], [1.0, 900.0]])
    >>> target = torch.tensor([[2.0, 100.0], [-1.0, 0.0]])
    >>> present = torch.tensor([[True, True], [True, False]])
    >>> lower, upper = grids_of_targets(prediction, target, present)
    >>> lower.tolist(), upper.tolist()
    ([-1.0, 100.0], [2.0, 500.0])
    """
    values = torch.stack((prediction.detach(), target.detach())).double()  # (2, N, t)
    lower = values.masked_fill(~present, math.inf).amin(dim=(0, 1))  # (t,)
    upper = values.masked_fill(~present, -math.inf).amax(dim=(0, 1))  # (t,)
    is_empty = ~present.any(dim=0)
    return lower.masked_fill(is_empty, 0.0), upper.masked_fill(is_empty, 0.0)


def mean_over_targets(losses: Tensor, present: Tensor) -> Tensor:
    """Loss of each row: the mean over the targets that it has; 0 for a row without any.

    Parameters
    ----------
    losses : Tensor, shape (N, t)
        0 where missing.
    present : Tensor of bool, shape (N, t)

    Returns
    -------
    Tensor, shape (N,)

    Examples
    --------
    >>> losses = torch.tensor([[1.0, 3.0], [5.0, 0.0]])
    >>> mean_over_targets(losses, torch.tensor([[True, True], [True, False]]))
    tensor([2., 5.])
    """
    return losses.sum(dim=1) / present.sum(dim=1).clamp(min=1)
