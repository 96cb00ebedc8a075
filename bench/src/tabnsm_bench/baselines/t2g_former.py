"""T2G-Former: a graph over the features is estimated, and features mix along its edges.

Written from the paper (Yan et al., AAAI 2023). An edge needs two things: a relation between the
two columns, which is learnt once for the table and is there or is not, and a weight, which
depends on the row. A readout node collects what each layer has found.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.feature_tokens import FeatureTokens, feed_forward
from tabnsm_bench.baselines.torch_models import NetworkMethod

_DEFAULTS = {"n_layers": 3, "d_token": 64, "n_heads": 8, "d_column": 8, "dropout": 0.1}


class FeatureGraph(nn.Module):
    """Edges between features: weights of the row on the topology of the table.

    Parameters
    ----------
    n_features, d_token, n_heads : int
        Sizes.
    d_column : int
        Width of the vectors that describe a column in the topology.

    Shape
    -----
    x : (B, D, d_token)
    returned : (B, n_heads, D, D), rows sum to 1 or, where a feature has no edge, to 0

    Examples
    --------
    >>> graph = FeatureGraph(4, d_token=8, n_heads=2, d_column=3)(torch.randn(5, 4, 8))
    >>> graph.shape, bool((graph.diagonal(dim1=-2, dim2=-1) == 0).all())
    (torch.Size([5, 2, 4, 4]), True)
    """

    def __init__(self, n_features: int, d_token: int, n_heads: int, d_column: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.head = nn.Linear(d_token, d_token)
        self.tail = nn.Linear(d_token, d_token)
        self.relation = nn.Parameter(torch.randn(n_heads, d_token // n_heads))
        scale = d_column**-0.5
        self.column_head = nn.Parameter(scale * torch.randn(n_heads, n_features, d_column))
        self.column_tail = nn.Parameter(scale * torch.randn(n_heads, n_features, d_column))
        self.edge_bias = nn.Parameter(torch.ones(n_heads, 1, 1))  # most edges are there at first

    def forward(self, x: Tensor) -> Tensor:
        """Estimate the graph of each row."""
        head = _heads(self.head(x), self.n_heads) * self.relation[:, None]  # (B, H, D, d_head)
        tail = _heads(self.tail(x), self.n_heads)
        scores = head @ tail.mT / head.shape[-1] ** 0.5  # (B, H, D, D)
        itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
        # A lone feature has no neighbour: its weights must not become NaN.
        weights = scores.masked_fill(itself, -1e9).softmax(dim=-1) * ~itself
        weights = weights * self.edges()
        graph: Tensor = weights / (weights.sum(dim=-1, keepdim=True) + 1e-6)
        return graph

    def edges(self) -> Tensor:
        """Zeros and ones, with the gradient of their probability; (H, D, D)."""
        probability = torch.sigmoid(self.column_head @ self.column_tail.mT + self.edge_bias)
        is_there = (probability > 0.5).to(probability.dtype)
        return is_there + probability - probability.detach()


class GraphLayer(nn.Module):
    """Features take from their neighbours in the graph.

    Shape
    -----
    x : (B, D, d_token)
    returned : (B, D, d_token)
    """

    def __init__(
        self, n_features: int, d_token: int, n_heads: int, d_column: int, dropout: float
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_token)
        self.graph = FeatureGraph(n_features, d_token, n_heads, d_column)
        self.value = nn.Linear(d_token, d_token)
        self.output = nn.Linear(d_token, d_token)
        self.dropout = nn.Dropout(dropout)
        self.own = feed_forward(d_token, dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Mix along the edges, then within each feature."""
        normed = self.norm(x)
        value = _heads(self.value(normed), self.graph.n_heads)
        taken = self.graph(normed) @ value  # (B, H, D, d_head)
        x = x + self.dropout(self.output(taken.transpose(1, 2).flatten(2)))
        out: Tensor = x + self.own(x)
        return out


class Readout(nn.Module):
    """A node that takes from all features of a layer.

    Shape
    -----
    node : (B, d_token)
    x : (B, D, d_token)
    returned : (B, d_token)
    """

    def __init__(self, d_token: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_token)
        self.query = nn.Linear(d_token, d_token)
        self.key = nn.Linear(d_token, d_token)
        self.value = nn.Linear(d_token, d_token)
        self.own = feed_forward(d_token, dropout)

    def forward(self, node: Tensor, x: Tensor) -> Tensor:
        """Take what the node's own state asks for."""
        normed = self.norm(x)
        scores = self.key(normed) @ self.query(node)[:, :, None]  # (B, D, 1)
        weights = (scores / node.shape[1] ** 0.5).softmax(dim=1)
        node = node + (weights * self.value(normed)).sum(dim=1)
        out: Tensor = node + self.own(node)
        return out


class T2GFormer(nn.Module):
    """Layers of graphs and the readout over all of them.

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
        d_column: int,
        dropout: float,
    ) -> None:
        super().__init__()
        n_features = len(columns.sizes)
        self.tokens = FeatureTokens(columns, d_token)
        self.layers = nn.ModuleList(
            GraphLayer(n_features, d_token, n_heads, d_column, dropout) for _ in range(n_layers)
        )
        self.node = nn.Parameter(torch.zeros(d_token))
        self.readouts = nn.ModuleList(Readout(d_token, dropout) for _ in range(n_layers + 1))
        self.output = nn.Sequential(nn.LayerNorm(d_token), nn.ReLU(), nn.Linear(d_token, 1))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Predict."""
        x = self.tokens(numbers, codes)
        node = self.readouts[0](self.node.expand(len(x), -1), x)
        for layer, readout in zip(self.layers, list(self.readouts)[1:], strict=True):
            x = layer(x)
            node = readout(node, x)
        output: Tensor = self.output(node).squeeze(1)
        return output


def _heads(x: Tensor, n_heads: int) -> Tensor:
    """From (B, D, d_token) to (B, H, D, d_head)."""
    return x.reshape(*x.shape[:-1], n_heads, -1).transpose(1, 2)


def t2g_former(**given: Any) -> NetworkMethod:
    """The method."""

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        return T2GFormer(columns, **options)

    return NetworkMethod("T2G-Former", "tabnsm", build, _DEFAULTS, {}, given)
