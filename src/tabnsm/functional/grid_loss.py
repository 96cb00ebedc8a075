"""GridLoss: distance between soft positions on a uniform grid, in closed form.

The soft index of the paper is a softmax over the ``K + 1`` anchors of a uniform grid. Left of a
value and right of it the weights fall off geometrically, so both sums have a closed form and the
cost does not depend on ``K``.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.errors import InvalidDataError, InvalidOptionError

Bounds: TypeAlias = tuple[Tensor | float, Tensor | float]

# The paper's constant against a range of zero.
_RANGE_EPSILON = 1e-8
# Above and below, the soft index has reached its limit in float64; the clamp keeps 0 * inf away.
_MIN_STEP, _MAX_STEP = 1e-200, 1e200
# Bernoulli series of 1/expm1(t) - 1/t + 1/2 in odd powers of t. At the switch it errs by 2e-17,
# the direct form by 2e-15.
_SERIES = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600)
_SERIES_BELOW = 0.1
_LOG2_E = math.log2(math.e)


def check_grid_options(n_grid_cells: int, temperature: float, *, normalize: bool) -> None:
    """Raise `InvalidOptionError` unless the grid's options are usable together.

    Examples
    --------
    >>> check_grid_options(10, 0.05, normalize=True)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: temperature * n_grid_cells must be >= 1 for the normalised \
GridLoss, got 0.05 * 10 = 0.5. Raise temperature to at least 0.1.
    """
    if not isinstance(n_grid_cells, int) or n_grid_cells < 1:
        raise InvalidOptionError(f"n_grid_cells must be an integer >= 1, got {n_grid_cells!r}.")
    if not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise InvalidOptionError(f"temperature must be finite and > 0, got {temperature!r}.")
    # A kernel narrower than a cell leaves flat steps between anchors, where no gradient flows.
    # The tolerance lets temperature = 1 / n_grid_cells pass whatever its rounding.
    if normalize and temperature * n_grid_cells < 1 - 1e-9:
        raise InvalidOptionError(
            "temperature * n_grid_cells must be >= 1 for the normalised GridLoss, got "
            f"{temperature} * {n_grid_cells} = {temperature * n_grid_cells:.6g}. "
            f"Raise temperature to at least {1 / n_grid_cells:.6g}."
        )


def grid_bounds(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Smallest and largest value of a batch: the range of its grid.

    Parameters
    ----------
    prediction, target : Tensor
        Values of any shape, at least one each.

    Returns
    -------
    lower, upper : Tensor
        0-d float64 tensors, detached: the grid is a yardstick, not something to learn.

    Examples
    --------
    >>> grid_bounds(torch.tensor([0.5, 3.0]), torch.tensor([1.0, -2.0]))
    (tensor(-2., dtype=torch.float64), tensor(3., dtype=torch.float64))
    """
    values = torch.cat((prediction.detach().flatten(), target.detach().flatten())).double()
    lower, upper = torch.aminmax(values)
    return lower, upper


def soft_index(
    x: Tensor,
    lower: Tensor | float,
    upper: Tensor | float,
    n_grid_cells: int,
    temperature: float,
) -> Tensor:
    r"""Expected anchor index under a softmax of negative distances to a uniform grid.

    .. math::
        b(x) = \sum_{k=0}^{K} k\, w_k(x), \qquad
        w_k(x) \propto \exp(-|x - e_k| / \tau), \qquad
        e_k = lower + k (upper - lower + 10^{-8}) / K

    Parameters
    ----------
    x : Tensor
        Values of any shape.
    lower, upper : Tensor or float
        First anchor, and last anchor before the constant is added. No gradient flows to them.
    n_grid_cells : int
        K, at least 1.
    temperature : float
        Softness, in the units of ``x``.

    Returns
    -------
    Tensor
        Soft indices between 0 and K, with the shape and dtype of ``x``; float64 inside.

    Notes
    -----
    The slope lies between 0 and :math:`K / (2 \tau)`. It jumps at the anchors: there it is the
    right-hand one, and at the last anchor the left-hand one, so that the extreme values of a
    batch, which are the ends of its grid, keep a gradient. Outside the anchors the soft index is
    constant and its slope 0. The slope itself has no derivative (no double backward).

    Examples
    --------
    >>> soft_index(torch.tensor([0.0, 5.0, 10.0]), 0.0, 10.0, n_grid_cells=10, temperature=0.001)
    tensor([ 0.,  5., 10.])
    """
    check_grid_options(n_grid_cells, temperature, normalize=False)
    lower, width = grid_range(lower, upper, x.device)
    return _apply_soft_index(x, lower, width, n_grid_cells, temperature)


def grid_loss(
    prediction: Tensor,
    target: Tensor,
    *,
    n_grid_cells: int,
    temperature: float,
    normalize: bool = False,
    bounds: Bounds | None = None,
    reduction: Literal["mean", "none"] = "mean",
) -> Tensor:
    r"""Absolute distance between the soft indices of prediction and target.

    Parameters
    ----------
    prediction, target : Tensor
        Values of the same shape.
    n_grid_cells : int
        K, at least 1. The cost does not depend on it.
    temperature : float
        Softness: in the units of the values, or relative to the grid's range with ``normalize``.
    normalize : bool, default=False
        False is the paper's loss, in index units, whose slope is at most
        :math:`K / (2\,temperature)`. True multiplies it by the width of a cell, which makes it a
        smoothed absolute error in the units of the target, with a slope of at most
        :math:`1 / (2\,temperature)` whatever the range; it requires
        ``temperature * n_grid_cells >= 1``.
    bounds : (lower, upper) or None, default=None
        Range of the grid. None takes the extrema of the batch, detached; fixed bounds make a
        row's loss independent of its batch. Tensors of shape (t,) give each of the t columns of
        values (N, t) a grid of its own; see `several_targets.grids_of_targets`.
    reduction : {"mean", "none"}, default="mean"
        Mean over all values, or the loss of each.

    Returns
    -------
    Tensor
        0-d, or the shape of the inputs; the dtype of the prediction, but at least float32.

    Examples
    --------
    >>> target = torch.tensor([0.0, 2.0, 10.0])
    >>> prediction = torch.tensor([1.0, 2.0, 8.0])
    >>> grid_loss(prediction, target, n_grid_cells=10, temperature=0.01)
    tensor(1.)
    >>> grid_loss(prediction, target, n_grid_cells=100_000, temperature=1e-5, normalize=True)
    tensor(1.0000)
    """
    check_grid_options(n_grid_cells, temperature, normalize=normalize)
    if reduction not in ("mean", "none"):
        raise InvalidOptionError(f'reduction must be "mean" or "none", got {reduction!r}.')
    if prediction.shape != target.shape or prediction.numel() == 0:
        raise InvalidDataError(
            "prediction and target must have the same shape and at least one value, got "
            f"{tuple(prediction.shape)} and {tuple(target.shape)}."
        )
    lower, upper = grid_bounds(prediction, target) if bounds is None else bounds
    lower, width = grid_range(lower, upper, prediction.device)
    absolute_temperature = temperature * width if normalize else temperature
    pair = torch.stack((prediction.double(), target.double()))  # (2, ...)
    index = _apply_soft_index(pair, lower, width, n_grid_cells, absolute_temperature)
    loss = (index[0] - index[1]).abs()  # (...)
    if normalize:
        loss = loss * (width / n_grid_cells)
    if reduction == "mean":
        loss = loss.mean()  # ()
    return loss.to(torch.promote_types(prediction.dtype, torch.float32))


def grid_range(
    lower: Tensor | float, upper: Tensor | float, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """First anchor and distance to the last one, as float64 tensors without gradient."""
    first = torch.as_tensor(lower, dtype=torch.float64, device=device).detach()
    last = torch.as_tensor(upper, dtype=torch.float64, device=device).detach()
    return first, last - first + _RANGE_EPSILON


class _SoftIndex(torch.autograd.Function):
    """`soft_index` with its analytic slope, which autograd would get wrong at the anchors."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        lower: Tensor,
        width: Tensor,
        n_grid_cells: int,
        temperature: float | Tensor,
    ) -> Tensor:
        offset = x.double() - lower
        cell_width = width / n_grid_cells
        step = (cell_width / temperature).clamp(_MIN_STEP, _MAX_STEP)
        # Clamped twice: by value, so that all outside values agree to the bit, and after the
        # division, whose rounding may pass the last anchor.
        position = (offset.clamp(0 * width, width) / cell_width).clamp(0, n_grid_cells)
        cell = position.floor().clamp(max=n_grid_cells - 1)
        fraction = position - cell

        # Row 0 is a single step, which both sides need; one call for all three is faster.
        n_anchors = torch.stack((torch.ones_like(cell), cell + 1, n_grid_cells - cell))  # (3, ...)
        length = n_anchors * step
        filled = -torch.expm1(-length)
        remainder = _remainder(length, filled)
        sides = n_anchors[1:]  # (2, ...) left, right
        # Steps from the nearest anchor of a side to the mean of that side's anchors.
        reach = (sides - 1) / 2 + remainder[0] - sides * remainder[1:]
        spread = 1 + reach[0] + reach[1]  # (...)
        # Relative to the nearer of the two neighbouring anchors, so that one mass is near 1.
        distance = torch.stack((fraction, 1 - fraction))  # (2, ...)
        # exp2, because torch.exp in float64 starts MKL's threads, even for a few values: on a busy
        # machine that alone takes milliseconds.
        exponent = (distance.amin(dim=0) - distance) * step
        mass = torch.exp2(exponent * _LOG2_E) * filled[1:]
        share = mass / mass.sum(dim=0)

        if ctx.needs_input_grad[0]:
            # Divided last: 2 / temperature may overflow where the product with 0 is meant.
            slope = 2 * share[0] * share[1] * spread / temperature  # (...)
            outside = (offset < 0) | (offset > width)
            ctx.save_for_backward(slope.masked_fill(outside, 0).to(x.dtype))
        return (cell - reach[0] + share[1] * spread).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None, None]:
        (slope,) = ctx.saved_tensors
        return grad_output * slope, None, None, None, None


def _apply_soft_index(
    x: Tensor, lower: Tensor, width: Tensor, n_grid_cells: int, temperature: float | Tensor
) -> Tensor:
    index: Tensor = _SoftIndex.apply(x, lower, width, n_grid_cells, temperature)  # type: ignore[no-untyped-call]
    return index


def _remainder(t: Tensor, filled: Tensor) -> Tensor:
    """``1/expm1(t) - 1/t + 1/2`` for t > 0, given ``filled = 1 - exp(-t)``.

    It is what stays of a geometric series once the terms that cancel for small t are taken out.
    """
    square = t * t
    series = _SERIES[-1] * square + _SERIES[-2]
    for coefficient in reversed(_SERIES[:-2]):
        series = series * square + coefficient
    direct = filled.reciprocal() - t.reciprocal() - 0.5
    return torch.where(t < _SERIES_BELOW, series * t, direct)
