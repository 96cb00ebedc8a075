"""Linear maps that draw their start from a given generator, and low-rank ones."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

# Matrix products with fewer columns than this and rows of odd length round by a row's place in
# the batch (measured: below 12 columns, lengths that are no multiple of 4).
NARROW, ODD = 16, 4


def uniform_parameter(*shape: int, bound: float, generator: Generator | None) -> nn.Parameter:
    """Parameter drawn uniformly from ``[-bound, bound]``."""
    return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound, generator=generator))


class Projection(nn.Module):
    """Linear map without bias whose start comes from `generator` and from no global state.

    Shape
    -----
    (..., n_in) -> (..., n_out)

    Examples
    --------
    >>> Projection(3, 2)(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_in: int, n_out: int, generator: Generator | None = None) -> None:
        super().__init__()
        self.weight = uniform_parameter(n_out, n_in, bound=n_in**-0.5, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_to(x, None)

    def apply_to(self, x: Tensor, bias: Tensor | None) -> Tensor:
        """The product; outside training each row of it is the same wherever it stands."""
        n_out, n_in = self.weight.shape
        if self.training or not (1 < n_out < NARROW and n_in % ODD):
            return F.linear(x, self.weight, bias)
        product = F.linear(x, F.pad(self.weight, (0, 0, 0, NARROW - n_out)))[..., :n_out]
        return product if bias is None else product + bias


class Linear(Projection):
    """`Projection` with a bias.

    Shape
    -----
    (..., n_in) -> (..., n_out)

    Examples
    --------
    >>> Linear(3, 2)(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, n_in: int, n_out: int, generator: Generator | None = None) -> None:
        super().__init__(n_in, n_out, generator)
        self.bias = uniform_parameter(n_out, bound=n_in**-0.5, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_to(x, self.bias)


def low_rank_linear(
    n_in: int, n_out: int, max_rank: int, generator: Generator | None = None
) -> nn.Module:
    """Linear map of rank at most `max_rank`, so that its parameters grow linearly in n_in.

    A dense map is used where it has fewer parameters than the two factors.

    Examples
    --------
    >>> n = sum(p.numel() for p in low_rank_linear(1000, 500, 16).parameters())
    >>> n == 1000 * 16 + 16 * 500 + 500
    True
    """
    if n_in * n_out <= max_rank * (n_in + n_out):
        return Linear(n_in, n_out, generator)
    return nn.Sequential(Projection(n_in, max_rank, generator), Linear(max_rank, n_out, generator))


def shallow_mlp(
    n_in: int, n_hidden: int, n_out: int, generator: Generator | None = None
) -> nn.Sequential:
    """One hidden layer with GELU: the paper's "shallow network".

    Examples
    --------
    >>> shallow_mlp(5, 8, 1)(torch.zeros(2, 5)).shape
    torch.Size([2, 1])
    """
    return nn.Sequential(
        Linear(n_in, n_hidden, generator),
        nn.GELU(),
        Linear(n_hidden, n_out, generator),
    )
