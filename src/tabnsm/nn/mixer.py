"""FeatureTokenMixer: the FTM operator with its parameters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tabnsm.functional.mixing import fuse_branches, mix_embeddings, mix_features
from tabnsm.nn.linear import Linear


class FeatureTokenMixer(nn.Module):
    """Mix within each token and across chunks of features, and fuse both by a product.

    Parameters
    ----------
    n_features : int
    d_token : int
    mixer_chunk_size : int
        Features that are mixed with each other; at most `n_features` are used.
    generator : torch.Generator or None

    Shape
    -----
    (B, D, d_token) -> (B, D, d_token)

    Examples
    --------
    >>> FeatureTokenMixer(10, 8, mixer_chunk_size=4)(torch.zeros(2, 10, 8)).shape
    torch.Size([2, 10, 8])
    """

    def __init__(
        self,
        n_features: int,
        d_token: int,
        mixer_chunk_size: int = 64,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        chunk = min(mixer_chunk_size, n_features)
        self.norm_scale = nn.Parameter(torch.ones(d_token))
        self.norm_shift = nn.Parameter(torch.zeros(d_token))
        self.embedding1 = Linear(d_token, d_token, generator)
        self.embedding2 = Linear(d_token, d_token, generator)
        self.feature1 = Linear(chunk, chunk, generator)
        self.feature2 = Linear(chunk, chunk, generator)
        self.fusion_scale = nn.Parameter(torch.ones(d_token))
        self.fusion_shift = nn.Parameter(torch.zeros(d_token))

    def kernel_parameters(self) -> dict[str, Tensor]:
        """The parameters by the names of `tabnsm.kernels.interaction`."""
        named = {
            name: getattr(self, name)
            for name in ("norm_scale", "norm_shift", "fusion_scale", "fusion_shift")
        }
        for name in ("embedding1", "embedding2", "feature1", "feature2"):
            linear = getattr(self, name)
            named[f"{name[:-1]}_weight{name[-1]}"] = linear.weight
            named[f"{name[:-1]}_bias{name[-1]}"] = linear.bias
        return named

    def forward(self, u: Tensor) -> Tensor:
        normed = F.layer_norm(u, self.norm_scale.shape, self.norm_scale, self.norm_shift)
        e1, e2, f1, f2 = self.embedding1, self.embedding2, self.feature1, self.feature2
        u1 = mix_embeddings(normed, e1.weight, e1.bias, e2.weight, e2.bias)  # (B, D, d_token)
        u2 = mix_features(normed, f1.weight, f1.bias, f2.weight, f2.bias)  # (B, D, d_token)
        return fuse_branches(u, u1, u2, self.fusion_scale, self.fusion_shift)
