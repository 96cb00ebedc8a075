"""AMFormer: attention that adds features beside attention that multiplies them.

Written from the paper (Cheng et al., AAAI 2024). A sum in the logarithm is a product: the second
attention works on logarithms of non-negative tokens and takes the exponential of what it finds.
Wide tables are read by a fixed number of learnt queries, so that the cost grows with the number
of features and not with its square, and each query looks at its strongest features alone.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.feature_tokens import FeatureTokens, feed_forward
from tabnsm_bench.baselines.torch_models import NetworkMethod

_DEFAULTS = {
    "n_layers": 3,
    "d_token": 64,
    "n_heads": 8,
    "max_queries": 64,
    "n_strongest": 32,
    "dropout": 0.1,
}
# Exponentials of larger sums would leave float32 within a few layers.
_MAX_LOG = 8.0


class StrongestAttention(nn.Module):
    """Attention in which each query takes from its strongest tokens alone.

    Parameters
    ----------
    d_token, n_heads : int
        Sizes.
    n_strongest : int
        Tokens that a query takes from.

    Shape
    -----
    queries : (B, Q, d_token)
    x : (B, D, d_token)
    returned : (B, Q, d_token)

    Examples
    --------
    >>> attention = StrongestAttention(8, 2, n_strongest=1)
    >>> attention(torch.randn(3, 2, 8), torch.randn(3, 5, 8)).shape
    torch.Size([3, 2, 8])
    """

    def __init__(self, d_token: int, n_heads: int, n_strongest: int) -> None:
        super().__init__()
        self.n_heads, self.n_strongest = n_heads, n_strongest
        self.query = nn.Linear(d_token, d_token)
        self.key = nn.Linear(d_token, d_token)
        self.value = nn.Linear(d_token, d_token)
        self.output = nn.Linear(d_token, d_token)

    def forward(self, queries: Tensor, x: Tensor) -> Tensor:
        """Take a weighted sum of values."""
        query, key, value = (
            part.reshape(*part.shape[:-1], self.n_heads, -1).transpose(1, 2)
            for part in (self.query(queries), self.key(x), self.value(x))
        )
        scores = query @ key.mT / query.shape[-1] ** 0.5  # (B, H, Q, D)
        if self.n_strongest < scores.shape[-1]:
            least = scores.topk(self.n_strongest, dim=-1).values[..., -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
        taken = scores.softmax(dim=-1) @ value  # (B, H, Q, d_head)
        output: Tensor = self.output(taken.transpose(1, 2).flatten(2))
        return output


class ArithmeticBlock(nn.Module):
    """Sums and products of tokens, side by side, brought together by a linear map over tokens.

    Parameters
    ----------
    n_tokens, n_queries : int
        Tokens that come in and go out; where they differ, the queries are learnt.
    d_token, n_heads, n_strongest, dropout
        Of the attentions.

    Shape
    -----
    x : (B, n_tokens, d_token)
    returned : (B, n_queries, d_token)

    Examples
    --------
    >>> block = ArithmeticBlock(6, 4, 8, 2, n_strongest=3, dropout=0.0)
    >>> block(torch.randn(5, 6, 8)).shape
    torch.Size([5, 4, 8])
    """

    def __init__(
        self,
        n_tokens: int,
        n_queries: int,
        d_token: int,
        n_heads: int,
        n_strongest: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_token)
        self.prompts = None
        if n_queries != n_tokens:
            self.prompts = nn.Parameter(d_token**-0.5 * torch.randn(n_queries, d_token))
        self.sums = StrongestAttention(d_token, n_heads, n_strongest)
        self.products = StrongestAttention(d_token, n_heads, n_strongest)
        self.fuse = nn.Linear(2 * n_queries, n_queries)
        self.dropout = nn.Dropout(dropout)
        self.own = feed_forward(d_token, dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Add, multiply, and bring both together."""
        normed = self.norm(x)
        if self.prompts is None:
            queries = normed
        else:
            queries = self.prompts.expand(len(x), -1, -1)
            x = queries
        logs = torch.log1p(torch.relu(normed))
        sums = self.sums(queries, normed)
        products = self.products(queries, logs).clamp(max=_MAX_LOG).exp()
        both = torch.cat([sums, products], dim=1)  # (B, 2 Q, d_token)
        x = x + self.dropout(self.fuse(both.mT).mT)
        output: Tensor = x + self.own(x)
        return output


class AMFormer(nn.Module):
    """Arithmetic blocks, and a prediction from the mean token.

    Shape
    -----
    numbers : (B, n_numbers)
    codes : (B, n_categories)
    returned : (B,)
    """

    def __init__(
        self,
        columns: Columns,
        n_layers: int,
        d_token: int,
        n_heads: int,
        max_queries: int,
        n_strongest: int,
        dropout: float,
    ) -> None:
        super().__init__()
        n_features = len(columns.sizes)
        n_queries = min(n_features, max_queries)
        self.tokens = FeatureTokens(columns, d_token)
        self.blocks = nn.Sequential(
            *(
                ArithmeticBlock(
                    n_queries if layer else n_features,
                    n_queries,
                    d_token,
                    n_heads,
                    n_strongest,
                    dropout,
                )
                for layer in range(n_layers)
            )
        )
        self.output = nn.Sequential(nn.LayerNorm(d_token), nn.ReLU(), nn.Linear(d_token, 1))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Predict."""
        x = self.blocks(self.tokens(numbers, codes))
        output: Tensor = self.output(x.mean(dim=1)).squeeze(1)
        return output


def amformer(**given: Any) -> NetworkMethod:
    """The method."""

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        return AMFormer(columns, **options)

    return NetworkMethod("AMFormer", "tabnsm", build, _DEFAULTS, {}, given)
