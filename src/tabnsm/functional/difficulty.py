"""RISE: difficulty bins of the rows, their weights, and two ways to draw rows by weight."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tabnsm.errors import InvalidDataError, InvalidOptionError

# Expected counts this close to a whole number, relative to it, are that number: their distance
# is the rounding of one sum and one division, and uniform weights must give each row once.
_COUNT_ROUNDING = 1e-12


def check_difficulty_options(n_bins: int, max_boost: float) -> None:
    """Raise `InvalidOptionError` unless the options of RISE are usable.

    Examples
    --------
    >>> check_difficulty_options(5, 0.5)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: max_boost must be finite and >= 1, got 0.5. Set it to 1 \
to draw all rows alike.
    """
    _check_n_bins(n_bins)
    if not isinstance(max_boost, int | float) or not 1 <= max_boost < math.inf:
        raise InvalidOptionError(
            f"max_boost must be finite and >= 1, got {max_boost!r}. "
            "Set it to 1 to draw all rows alike."
        )


def difficulty_bins(losses: Tensor, n_bins: int) -> Tensor:
    """Quantile bin of each row's loss, 0 the easiest.

    A row's bin is ``floor(n_bins * q)``, with q the share of rows whose loss is smaller.

    Parameters
    ----------
    losses : Tensor
        Loss of each row, shape (n_rows,). NaN counts as hardest.
    n_bins : int
        G, at least 1; may exceed the number of rows.

    Returns
    -------
    Tensor
        int64 bin of each row. Equal losses share a bin, that of the first of them, so that rows
        which are all alike are all in bin 0; without ties the bins differ by at most one row.

    Examples
    --------
    >>> difficulty_bins(torch.tensor([0.1, 5.0, 0.1, 0.7, 2.0, 0.9]), n_bins=3)
    tensor([0, 2, 0, 1, 2, 1])
    """
    _check_n_bins(n_bins)
    if losses.ndim != 1 or losses.numel() == 0:
        raise InvalidDataError(
            f"losses must have shape (n_rows,) with n_rows >= 1, got {tuple(losses.shape)}."
        )
    values = losses.detach().double().nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
    n_smaller = torch.searchsorted(values.sort().values, values)
    bin_index = n_smaller * n_bins // values.numel()
    return bin_index.masked_fill(losses.isnan(), n_bins - 1)


def difficulty_weights(bin_index: Tensor, n_bins: int, max_boost: float) -> Tensor:
    r"""Sampling weight :math:`1 + g (\beta - 1) / (G - 1)` of rows in difficulty bin g.

    Parameters
    ----------
    bin_index : Tensor
        Integers from 0 to ``n_bins - 1``.
    n_bins : int
        G. One bin makes all weights 1.
    max_boost : float
        :math:`\beta \ge 1`, the weight of the hardest bin.

    Returns
    -------
    Tensor
        float64, the shape of ``bin_index``.

    Examples
    --------
    >>> difficulty_weights(torch.tensor([0, 1, 2]), n_bins=3, max_boost=2.0)
    tensor([1.0000, 1.5000, 2.0000], dtype=torch.float64)
    """
    check_difficulty_options(n_bins, max_boost)
    if bin_index.numel() and not 0 <= int(bin_index.min()) <= int(bin_index.max()) < n_bins:
        raise InvalidDataError(
            f"bin_index must lie in 0..{n_bins - 1}, "
            f"got {int(bin_index.min())}..{int(bin_index.max())}."
        )
    return 1 + bin_index.double() * ((max_boost - 1) / max(n_bins - 1, 1))


def draw_multinomial(weights: Tensor, n_draws: int, generator: torch.Generator) -> Tensor:
    """Independent draws with replacement, row i with probability ``weights[i] / sum``.

    Parameters
    ----------
    weights : Tensor
        Positive, shape (n_rows,).
    n_draws : int
        At least 1.
    generator : torch.Generator
        Source of the randomness, on the CPU.

    Returns
    -------
    Tensor
        int64 rows, shape (n_draws,).

    Examples
    --------
    >>> weights = torch.tensor([3.0, 1e-9, 1.0])
    >>> rows = draw_multinomial(weights, 100, torch.Generator().manual_seed(0))
    >>> rows.unique()
    tensor([0, 2])
    """
    weights = _checked_weights(weights, n_draws)
    # Not torch.multinomial, which stops at 2**24 rows.
    cumulative = weights.cumsum(0)
    points = torch.rand(n_draws, generator=generator, dtype=torch.float64) * cumulative[-1]
    # A point may round up to the total, which no row covers.
    return torch.searchsorted(cumulative, points, right=True).clamp(max=len(weights) - 1)


def draw_systematic(weights: Tensor, n_draws: int, generator: torch.Generator) -> Tensor:
    """Systematic resampling: row i appears floor or ceil of its expected count, in random order.

    The expectation is that of `draw_multinomial`, ``n_draws * weights[i] / sum``, with far less
    variance: no row is left out whose expected count is at least 1, and equal weights with
    ``n_draws == n_rows`` give a plain shuffle.

    Parameters
    ----------
    weights : Tensor
        Positive, shape (n_rows,).
    n_draws : int
        At least 1.
    generator : torch.Generator
        Source of the randomness, on the CPU.

    Returns
    -------
    Tensor
        int64 rows, shape (n_draws,).

    Examples
    --------
    >>> rows = draw_systematic(torch.ones(6), 6, torch.Generator().manual_seed(0))
    >>> rows.sort().values
    tensor([0, 1, 2, 3, 4, 5])
    >>> rows = draw_systematic(torch.tensor([1.0, 2.0]), 6, torch.Generator().manual_seed(0))
    >>> rows.bincount()
    tensor([2, 4])
    """
    weights = _checked_weights(weights, n_draws)
    # A random order first: else rows that follow each other would never be drawn independently.
    order = torch.randperm(len(weights), generator=generator)
    smallest, largest = weights.aminmax()
    if n_draws == len(weights) and smallest == largest:
        # Every row once, as below, without the arrays in between.
        return order[torch.randperm(n_draws, generator=generator)]
    expected = weights[order] * (n_draws / weights.sum())
    whole = (expected * (1 + _COUNT_ROUNDING)).floor()
    ends = whole.long().cumsum(0)
    n_left = n_draws - int(ends[-1])
    if n_left > 0:
        # The fractional parts, end to end on a line of length n_left, with a mark at each
        # integer after a common random shift: each part meets at most one mark.
        parts = expected.sub_(whole).clamp_(min=0).cumsum(0)
        del expected, whole
        shift = torch.rand((), generator=generator, dtype=torch.float64)
        n_marks = (parts * (n_left / parts[-1]) - shift).ceil().long().clamp(max=n_left)
        del parts
        n_marks[-1] = n_left  # whatever the rounding, n_draws rows
        ends += n_marks
        del n_marks
    rows = order[torch.searchsorted(ends, torch.arange(n_draws), right=True)]  # (n_draws,)
    return rows[torch.randperm(n_draws, generator=generator)]


def _check_n_bins(n_bins: int) -> None:
    if not isinstance(n_bins, int) or n_bins < 1:
        raise InvalidOptionError(f"n_difficulty_bins must be an integer >= 1, got {n_bins!r}.")


def _checked_weights(weights: Tensor, n_draws: int) -> Tensor:
    """Weights as float64, once they and the number of draws are known to be usable."""
    if not isinstance(n_draws, int) or n_draws < 1:
        raise InvalidOptionError(f"n_draws must be an integer >= 1, got {n_draws!r}.")
    if weights.ndim != 1 or weights.numel() == 0:
        raise InvalidDataError(
            f"weights must have shape (n_rows,) with n_rows >= 1, got {tuple(weights.shape)}."
        )
    smallest, largest = weights.aminmax()
    if not (smallest > 0 and largest < math.inf):
        raise InvalidDataError(
            f"weights must be positive and finite, got values from {smallest:g} to {largest:g}. "
            "Drop the rows that must not be drawn."
        )
    return weights.double()
