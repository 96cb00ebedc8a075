"""FeatureTokenizer: one vector per feature."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from tabnsm.functional.tokens import affine_tokens, category_tokens
from tabnsm.nn.linear import uniform_parameter


class FeatureTokenizer(nn.Module):
    """Affine token per number, embedded token per category.

    Parameters
    ----------
    n_features : int
    d_token : int
    category_sizes : sequence of int or None
        One entry per feature: 0 for a number, else how many codes the category has, code 0
        ("never seen in training") included. Its vector starts, and stays, at zero, so that an
        unseen category speaks through the feature's bias alone. None means numbers only.
    generator : torch.Generator or None

    Shape
    -----
    (B, D) -> (B, D, d_token)

    Examples
    --------
    >>> FeatureTokenizer(3, 8, category_sizes=[0, 4, 0])(torch.ones(2, 3)).shape
    torch.Size([2, 3, 8])
    """

    numeric: Tensor
    categorical: Tensor
    offsets: Tensor
    code_limits: Tensor

    def __init__(
        self,
        n_features: int,
        d_token: int,
        category_sizes: Sequence[int] | None = None,
        generator: Generator | None = None,
    ) -> None:
        super().__init__()
        sizes = torch.tensor([0] * n_features if category_sizes is None else list(category_sizes))
        self.n_features = n_features
        self.register_buffer("numeric", torch.nonzero(sizes == 0).flatten(), persistent=False)
        self.register_buffer("categorical", torch.nonzero(sizes).flatten(), persistent=False)
        sizes = sizes[self.categorical]
        self.register_buffer("offsets", sizes.cumsum(0) - sizes, persistent=False)
        self.register_buffer("code_limits", (sizes - 1).float(), persistent=False)
        # Tokens of unit size: their mean over the token axis is what reaches the head.
        bound = 3**0.5
        self.weight = uniform_parameter(
            len(self.numeric), d_token, bound=bound, generator=generator
        )
        self.bias = uniform_parameter(n_features, d_token, bound=bound, generator=generator)
        if len(self.categorical):
            self.table = uniform_parameter(
                int(sizes.sum()), d_token, bound=bound, generator=generator
            )
            with torch.no_grad():
                self.table[self.offsets] = 0.0

    def forward(self, x: Tensor) -> Tensor:
        if not len(self.categorical):
            return affine_tokens(x, self.weight, self.bias)  # (B, D, d_token)
        tokens = x.new_empty(*x.shape, self.bias.shape[1])  # (B, D, d_token)
        tokens[:, self.numeric] = affine_tokens(
            x[:, self.numeric], self.weight, self.bias[self.numeric]
        )
        codes = torch.clamp(x[:, self.categorical], min=0.0).minimum(self.code_limits)
        tokens[:, self.categorical] = category_tokens(
            codes, self.table, self.offsets, self.bias[self.categorical]
        )
        return tokens
