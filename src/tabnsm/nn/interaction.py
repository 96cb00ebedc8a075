"""AdaptiveSparseInteraction (ASIM): attention over features, mixing, residual blending."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tabnsm.functional.blending import blend_attended, summarize_features


class AdaptiveSparseInteraction(nn.Module):
    """Enrich every feature by the features that matter for this row.

    Parameters
    ----------
    attention : Module
        Maps normed tokens to attended tokens, both (B, D, d_token).
    mixer : Module or None
        The FTM operator; None switches it off, so that Z = U.
    d_token : int

    Shape
    -----
    (B, D, d_token) -> (B, D)

    Examples
    --------
    >>> asim = AdaptiveSparseInteraction(nn.Identity(), None, d_token=8)
    >>> asim(torch.rand(2, 5, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(self, attention: nn.Module, mixer: nn.Module | None, d_token: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(d_token)
        self.attention = attention
        self.mixer = mixer
        self.token_weight = nn.Parameter(torch.tensor(1.0))
        self.mixed_weight = nn.Parameter(torch.tensor(1.0))
        self.skip_weight = nn.Parameter(torch.tensor(1.0))

    def forward(self, tokens: Tensor) -> Tensor:
        attended = self.attention(self.norm(tokens))  # (B, D, d_token)
        u = blend_attended(tokens, attended, self.token_weight)  # (B, D, d_token)
        mixed = u if self.mixer is None else self.mixer(u)  # (B, D, d_token)
        return summarize_features(tokens, u, mixed, self.mixed_weight, self.skip_weight)  # (B, D)
