"""Selective state-space scan along the features: the paper's Mamba ablation, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor


def selective_scan(x: Tensor, step: Tensor, rate: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Run ``h_t = exp(step_t rate) h_{t-1} + step_t b_t x_t`` and read ``y_t = c_t @ h_t``.

    Parameters
    ----------
    x, step : Tensor, shape (B, D, d_inner)
        Inputs and positive step sizes.
    rate : Tensor, shape (d_inner, d_state)
        Negative decay rates.
    b, c : Tensor, shape (B, D, d_state)
        Input and output directions, which depend on the token: that makes the scan selective.

    Returns
    -------
    Tensor, shape (B, D, d_inner)

    Examples
    --------
    >>> one = torch.ones(1, 3, 1)
    >>> selective_scan(one, one, torch.zeros(1, 1), one, one).flatten()  # a running sum
    tensor([1., 2., 3.])
    """
    decay = torch.exp(step.unsqueeze(-1) * rate)  # (B, D, d_inner, d_state)
    entering = (step * x).unsqueeze(-1) * b.unsqueeze(-2)  # (B, D, d_inner, d_state)
    state = torch.zeros_like(entering[:, 0])  # (B, d_inner, d_state)
    states = []
    for decay_t, entering_t in zip(decay.unbind(1), entering.unbind(1), strict=True):
        state = torch.addcmul(entering_t, decay_t, state)
        states.append(state)
    return torch.einsum("bdis,bds->bdi", torch.stack(states, dim=1), c)  # (B, D, d_inner)
