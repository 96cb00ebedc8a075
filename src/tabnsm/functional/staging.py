"""Multi-stage regression head as a function of its maps (paper, eqs. branch1 to fusion)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Map = Callable[[Tensor], Tensor]


def staged_prediction(
    features: Tensor, mlp1: Map, dec1: Map, mlp2: Map, dec2: Map, mlp3: Map, fusion: Map
) -> Tensor:
    """Predict from coarse to fine; every stage sees the whole feature vector again.

    Parameters
    ----------
    features : Tensor, shape (B, D)
        The paper's ``y_feat``.
    mlp1, dec1, mlp2, dec2, mlp3, fusion : callable
        Maps D -> D, D -> half, D -> half, half -> t, D -> t and half + 2 t -> t, where half is
        D / 2 rounded up, so that odd D and D = 1 have a middle stage too, and t is the number
        of targets, 1 in the paper.

    Returns
    -------
    Tensor, shape (B, t)
    """
    y1 = dec1(mlp1(features) + features)  # (B, half)
    y2 = dec2(mlp2(features) + y1)  # (B, t)
    y3 = mlp3(features) + y2  # (B, t)
    correction = fusion(torch.cat([y1, y2, y3], dim=-1))  # (B, t)
    return correction + y2 + y3  # (B, t)
