"""MultiStageHead: from the numbers of all features to the prediction."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn

from tabnsm import kernels
from tabnsm.functional.staging import staged_prediction
from tabnsm.nn.linear import Linear, low_rank_linear, shallow_mlp

TILE_ROWS = 64
"""Rows per matrix product outside training."""


class MultiStageHead(nn.Module):
    """Residually coupled branches of falling width, fused into one number per target.

    Every map has at most `head_width` inner units, so that parameters grow linearly with D.
    Without the compiled kernel, rows go outside training in tiles that are always full, because
    matrix products of other shapes may round differently: a row's result does not depend on its
    neighbours.

    Parameters
    ----------
    n_features : int
    head_width : int
    generator : torch.Generator or None
    n_targets : int, default 1

    Shape
    -----
    (B, D) -> (B, t)

    Examples
    --------
    >>> MultiStageHead(7, head_width=16)(torch.zeros(2, 7)).shape
    torch.Size([2, 1])
    """

    def __init__(
        self,
        n_features: int,
        head_width: int = 256,
        generator: Generator | None = None,
        n_targets: int = 1,
    ) -> None:
        super().__init__()
        half = (n_features + 1) // 2
        self.mlp1 = shallow_mlp(n_features, head_width, n_features, generator)
        self.dec1 = low_rank_linear(n_features, half, head_width, generator)
        self.mlp2 = shallow_mlp(n_features, head_width, half, generator)
        self.dec2 = Linear(half, n_targets, generator)
        self.mlp3 = shallow_mlp(n_features, head_width, n_targets, generator)
        self.fusion = shallow_mlp(half + 2 * n_targets, head_width, n_targets, generator)

    def forward(self, features: Tensor) -> Tensor:
        if kernels.serves_head(features):
            return kernels.head(features, self.kernel_parameters())  # (B, t)
        if self.training or torch.is_grad_enabled():
            return self.predict(features)
        tiles = [
            self.predict(nn.functional.pad(tile, (0, 0, 0, TILE_ROWS - len(tile))))[: len(tile)]
            for tile in torch.split(features, TILE_ROWS)
        ]
        return tiles[0] if len(tiles) == 1 else torch.cat(tiles)

    def kernel_parameters(self) -> dict[str, Tensor]:
        """The parameters by the names of `tabnsm.kernels.head`."""
        named: dict[str, Tensor] = {}
        for name in ("mlp1", "mlp2", "mlp3", "fusion"):
            first, _, second = getattr(self, name)
            named[f"{name}_weight1"], named[f"{name}_bias1"] = first.weight, first.bias
            named[f"{name}_weight2"], named[f"{name}_bias2"] = second.weight, second.bias
        decoder = list(self.dec1.parameters())  # the factor if there are two, weight, bias
        names = ("dec1_factor", "dec1_weight", "dec1_bias")[-len(decoder) :]
        named |= dict(zip(names, decoder, strict=True))
        named["dec2_weight"], named["dec2_bias"] = self.dec2.weight, self.dec2.bias
        return named

    def predict(self, features: Tensor) -> Tensor:
        """The stages for all rows at once, (B, D) -> (B, t)."""
        return staged_prediction(
            features, self.mlp1, self.dec1, self.mlp2, self.dec2, self.mlp3, self.fusion
        )


class OneOutput(nn.Module):
    """One of the numbers that a head gives.

    Parameters
    ----------
    head : nn.Module
        From (B, D) to (B, t).
    place : int
        Which of the t.

    Shape
    -----
    (B, D) -> (B, 1)
    """

    def __init__(self, head: nn.Module, place: int) -> None:
        super().__init__()
        self.head = head
        self.place = place

    def forward(self, features: Tensor) -> Tensor:
        prediction: Tensor = self.head(features)
        return prediction[:, self.place : self.place + 1]
