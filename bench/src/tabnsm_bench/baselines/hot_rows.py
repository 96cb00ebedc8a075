"""First layers that look categories up: what one-hot rows give, without multiplying by zeros.

Thousands of categories make a row of thousands of columns, of which a few are 1. Here such a row
is its numbers and the positions of its ones, side by side, and the first layer of a network adds
up the weights at these positions. All else, first weights included, is as the network's authors
have it.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns

# Rows of up to so many columns are multiplied as they are.
_MAX_COLUMNS = 4096


def has_long_rows(columns: Columns) -> bool:
    """Whether one-hot rows have thousands of columns, nearly all of them zeros.

    Examples
    --------
    >>> [has_long_rows(Columns((0, size))) for size in (10, 5000)]
    [False, True]
    """
    return sum(columns.category_sizes) > _MAX_COLUMNS


class Positions(nn.Module):
    """Positions of the ones in a one-hot row.

    Parameters
    ----------
    sizes : list of int
        Numbers of codes of the categories.
    n_before : int
        Columns of the row that come before them.

    Shape
    -----
    codes : (B, n_categories)
    returned : (B, n_categories)

    Examples
    --------
    >>> Positions([2, 3], 4)(torch.tensor([[1, 0], [0, 2]]))
    tensor([[5, 6],
            [4, 8]])
    """

    def __init__(self, sizes: list[int], n_before: int) -> None:
        super().__init__()
        self.starts = torch.tensor(list(accumulate(sizes[:-1], initial=n_before)))

    def forward(self, codes: Tensor) -> Tensor:
        """Codes behind the columns of the categories before them."""
        return codes + self.starts


class HotLinear(nn.Module):
    """A linear layer on numbers and positions.

    Parameters
    ----------
    layer : nn.Linear
        Layer on one-hot rows, whose weights it takes.
    n_hot : int
        Positions at the end of a row.

    Shape
    -----
    row : (B, n_numbers + n_hot)
    returned : (B, d)

    Examples
    --------
    >>> layer = nn.Linear(5, 2)
    >>> hot = HotLinear(layer, 2)(torch.tensor([[0.5, 2.0, 3.0]]))
    >>> torch.allclose(hot, layer(torch.tensor([[0.5, 0.0, 1.0, 1.0, 0.0]])))
    True
    """

    def __init__(self, layer: nn.Linear, n_hot: int) -> None:
        super().__init__()
        self.weight, self.bias, self.n_hot = layer.weight, layer.bias, n_hot

    def forward(self, row: Tensor) -> Tensor:
        """As the layer on one-hot rows."""
        numbers, positions = _parts(row, self.n_hot)
        taken = nn.functional.embedding(positions, self.weight.T).sum(dim=1)  # (B, d)
        of_numbers = self.weight[:, : numbers.shape[1]]
        return nn.functional.linear(numbers, of_numbers, self.bias) + taken


class HotBatchEnsemble(nn.Module):
    """TabM's first layer, k linear maps that share their weights, on numbers and positions.

    Parameters
    ----------
    layer : tabm.LinearBatchEnsemble
        Layer on one-hot rows, whose weights it takes.
    n_hot : int
        Positions at the end of a row.

    Shape
    -----
    row : (B, k, n_numbers + n_hot), the same for all k
    returned : (B, k, d)
    """

    def __init__(self, layer: Any, n_hot: int) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.r, self.s = layer.r, layer.s  # of a map's inputs and outputs
        self.n_hot = n_hot

    def forward(self, row: Tensor) -> Tensor:
        """As the layer on one-hot rows."""
        numbers, positions = _parts(row[:, 0], self.n_hot)
        n_numbers = numbers.shape[1]
        taken = nn.functional.embedding(positions, self.weight.T)  # (B, n_hot, d)
        scales = nn.functional.embedding(positions, self.r.T)  # (B, n_hot, k)
        scaled = numbers[:, None] * self.r[:, :n_numbers]  # (B, k, n_numbers)
        of_numbers = scaled @ self.weight[:, :n_numbers].T  # (B, k, d)
        output: Tensor = (of_numbers + scales.mT @ taken) * self.s + self.bias
        return output


def take_positions(network: nn.Module, layer: str, hot: type[nn.Module], n_hot: int) -> None:
    """Give a network that takes one-hot rows a layer that takes positions.

    Parameters
    ----------
    network : nn.Module
        Has a layer that sees the rows, and nothing else of it does.
    layer : str
        Name of that layer.
    hot : type
        `HotLinear` or `HotBatchEnsemble`.
    n_hot : int
        Positions in a row.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(5, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> take_positions(network, "0", HotLinear, 2)
    >>> [type(module).__name__ for module in network]
    ['HotLinear', 'ReLU', 'Linear']
    """
    network.set_submodule(layer, hot(network.get_submodule(layer), n_hot))


def _parts(row: Tensor, n_hot: int) -> tuple[Tensor, Tensor]:
    """Numbers, and positions, which are whole numbers also as float32 (below 2^24)."""
    n_numbers = row.shape[1] - n_hot
    return row[:, :n_numbers], row[:, n_numbers:].long()
