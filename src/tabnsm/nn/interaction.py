"""AdaptiveSparseInteraction (ASIM): attention over features, mixing, residual blending."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tabnsm import kernels
from tabnsm.functional.blending import blend_attended, pool_means, summarize_features
from tabnsm.nn.attention import SparseAttention
from tabnsm.nn.mixer import FeatureTokenMixer


class AdaptiveSparseInteraction(nn.Module):
    """Enrich every feature by the features that matter for this row.

    Parameters
    ----------
    attention : Module
        Maps normed tokens to attended tokens, both (B, D, d_token).
    mixer : FeatureTokenMixer or None
        The FTM operator; None switches it off, so that Z = U.
    d_token : int

    Shape
    -----
    (B, D, d_token) -> (B, D * (1 + n_pools))

    Examples
    --------
    >>> asim = AdaptiveSparseInteraction(nn.Identity(), None, d_token=8)
    >>> asim(torch.rand(2, 5, 8)).shape
    torch.Size([2, 5])
    """

    def __init__(self, attention: nn.Module, mixer: FeatureTokenMixer | None, d_token: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(d_token)
        self.attention = attention
        self.mixer = mixer
        self.token_weight = nn.Parameter(torch.tensor(1.0))
        self.mixed_weight = nn.Parameter(torch.tensor(1.0))
        self.skip_weight = nn.Parameter(torch.tensor(1.0))

    def runs_compiled(self, tokens: Tensor) -> bool:
        """Whether one compiled pass per row does it all; then rows are independent to the bit."""
        return isinstance(self.attention, SparseAttention) and kernels.serves(tokens)

    def forward(self, tokens: Tensor, n_pools: int = 0) -> Tensor:
        """One number per feature, then the means of `n_pools` equal parts of every token."""
        run = self.compiled if self.runs_compiled(tokens) else self.composed
        return run(tokens, n_pools)

    def compiled(self, tokens: Tensor, n_pools: int = 0) -> Tensor:
        """The same as `composed`, by the kernel."""
        shape = self.kernel_shape(tokens.shape[1], n_pools)
        return kernels.interaction(tokens, self.kernel_parameters(), shape)

    def kernel_shape(self, n_features: int, n_pools: int) -> kernels.InteractionShape:
        """The attention's options, as the kernel wants them."""
        assert isinstance(self.attention, SparseAttention)
        c = self.attention.config
        return kernels.InteractionShape.of(
            n_features,
            c.n_heads,
            n_pools,
            window_size=c.window_size,
            compress_block_size=c.compress_block_size,
            compress_stride=c.resolved_stride,
            selection_block_size=c.selection_block_size,
            n_selected_blocks=c.n_selected_blocks,
            max_exact_features=c.max_exact_features,
        )

    def kernel_parameters(self) -> dict[str, Tensor]:
        """The parameters by the names of `tabnsm.kernels.interaction`."""
        assert isinstance(self.attention, SparseAttention)
        return {
            "norm": self.norm.weight,
            "token_weight": self.token_weight,
            "mixed_weight": self.mixed_weight,
            "skip_weight": self.skip_weight,
            **self.attention.kernel_parameters(),
            **({} if self.mixer is None else self.mixer.kernel_parameters()),
        }

    def composed(self, tokens: Tensor, n_pools: int = 0) -> Tensor:
        """Step by step, on any device."""
        attended = self.attention(self.norm(tokens))  # (B, D, d_token)
        u = blend_attended(tokens, attended, self.token_weight)  # (B, D, d_token)
        mixed = u if self.mixer is None else self.mixer(u)  # (B, D, d_token)
        weights = (self.mixed_weight, self.skip_weight)
        features = summarize_features(tokens, u, mixed, *weights)  # (B, D)
        if not n_pools:
            return features
        return torch.cat([features, pool_means(tokens, n_pools)], dim=1)  # (B, D * (1 + n_pools))
