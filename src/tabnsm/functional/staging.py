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
        Maps D -> D, D -> half, D -> half, half -> 1, D -> 1 and half + 2 -> 1, where half is
        D / 2 rounded up, so that odd D and D = 1 have a middle stage too.

    Returns
    -------
    Tensor, shape (B,)
    """
    y1 = dec1(mlp1(features) + features)  # (B, half)
    y2 = dec2(mlp2(features) + y1)  # (B, 1)
    y3 = mlp3(features) + y2  # (B, 1)
    correction = fusion(torch.cat([y1, y2, y3], dim=-1))  # (B, 1)
    return (correction + y2 + y3).squeeze(-1)  # (B,)
