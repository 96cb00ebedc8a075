"""One token per feature, for networks that attend over features."""

from __future__ import annotations

from itertools import accumulate

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns


class FeatureTokens(nn.Module):
    """A weight and a bias vector per number, an embedding per category.

    Parameters
    ----------
    columns : Columns
        Which features are codes.
    d_token : int
        Width of a token.

    Shape
    -----
    numbers : (B, n_numbers)
    codes : (B, n_categories)
    returned : (B, n_numbers + n_categories, d_token)

    Examples
    --------
    >>> tokens = FeatureTokens(Columns((0, 3, 2)), d_token=4)
    >>> tokens(torch.zeros(5, 1), torch.ones(5, 2, dtype=torch.long)).shape
    torch.Size([5, 3, 4])
    """

    starts: Tensor

    def __init__(self, columns: Columns, d_token: int) -> None:
        super().__init__()
        sizes = columns.category_sizes
        bound = d_token**-0.5
        self.weight = nn.Parameter(torch.empty(columns.n_numbers, d_token).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(len(columns.sizes), d_token).uniform_(-bound, bound))
        self.embedding = nn.Embedding(max(1, sum(sizes)), d_token)
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        starts = torch.tensor(list(accumulate(sizes[:-1], initial=0)) if sizes else [])
        self.register_buffer("starts", starts.long())

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Tokens of the numbers, then of the categories."""
        of_numbers = numbers[:, :, None] * self.weight  # (B, n_numbers, d_token)
        of_codes = self.embedding(codes + self.starts)  # (B, n_categories, d_token)
        return torch.cat([of_numbers, of_codes], dim=1) + self.bias


def feed_forward(d_token: int, dropout: float, factor: int = 2) -> nn.Sequential:
    """The part of a block that works on each token by itself.

    Examples
    --------
    >>> feed_forward(4, 0.0)(torch.zeros(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """
    return nn.Sequential(
        nn.LayerNorm(d_token),
        nn.Linear(d_token, factor * d_token),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(factor * d_token, d_token),
    )
