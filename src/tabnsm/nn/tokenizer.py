"""FeatureTokenizer: one vector per feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tabnsm import kernels
from tabnsm.functional.tokens import affine_tokens, category_tokens, piecewise_tokens
from tabnsm.nn.linear import uniform_parameter


class FeatureTokenizer(nn.Module):
    """Affine or piecewise-linear token per number, embedded token per category.

    Parameters
    ----------
    n_features : int
    d_token : int
    category_sizes : sequence of int or None
        One entry per feature: 0 for a number, else how many codes the category has, code 0
        ("never seen in training") included. Its vector starts, and stays, at zero, so that an
        unseen category speaks through the feature's bias alone. None means numbers only.
    bins : Tensor or None
        Left ends and widths of bins of each feature, (n_features, 2, n_bins); the ends are
        infinite where a feature has fewer, or none at all. A feature with bins adds to its
        affine token what `tabnsm.functional.tokens.piecewise_tokens` gives. None means none.
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
    binned: Tensor
    begin: Tensor
    used: Tensor
    low: Tensor
    width: Tensor

    def __init__(
        self,
        n_features: int,
        d_token: int,
        category_sizes: Sequence[int] | None = None,
        bins: Tensor | None = None,
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
        # Tokens of unit size: means over the token axis are what reaches the head.
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
        bins = torch.empty(n_features, 2, 0) if bins is None else bins
        n_bins = torch.isfinite(bins[:, 0]).sum(1)
        binned = n_bins.nonzero().flatten()
        low, n_bins = bins[binned, 0].contiguous(), n_bins[binned]
        used = torch.isfinite(low.flatten()).nonzero().flatten()
        begin = torch.cat([n_bins.new_zeros(1), n_bins.cumsum(0)])
        self.register_buffer("binned", binned, persistent=False)
        self.register_buffer("begin", begin, persistent=False)
        self.register_buffer("used", used, persistent=False)
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("width", bins[binned, 1].contiguous(), persistent=False)
        if len(binned):
            # NOTE[DIFF]: the paper's token is affine in the number. All bins of a
            # number together begin with half the size of that line.
            self.slopes = uniform_parameter(
                len(used), d_token, bound=0.5 * bound, generator=generator
            )
            with torch.no_grad():
                self.slopes.div_(n_bins.repeat_interleave(n_bins).sqrt().unsqueeze(1))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self._affine(x)
        if not len(self.binned):
            return tokens
        numbers = x[:, self.binned]  # (B, P)
        if kernels.serves(tokens) and not x.requires_grad:
            where = (self.binned, self.begin, self.low, self.width)
            return kernels.add_piecewise_tokens(tokens, numbers, *where, self.slopes)
        slopes = self.slopes.new_zeros(self.low.numel(), self.slopes.shape[1])
        slopes = slopes.index_copy(0, self.used, self.slopes)  # (P * n_bins, d_token)
        slopes = slopes.view(*self.low.shape, -1)  # (P, n_bins, d_token)
        added = piecewise_tokens(numbers, self.low, self.width, slopes)
        return tokens.index_add(1, self.binned, added)  # (B, D, d_token)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *rest: Any, **named: Any
    ) -> None:
        # Files of some earlier versions have slopes for bins that a feature lacks, too.
        slopes = state_dict.get(f"{prefix}slopes")
        if slopes is not None and slopes.ndim == 3:  # (P, n_bins, d_token)
            state_dict[f"{prefix}slopes"] = slopes.flatten(0, 1)[self.used]
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)

    def _affine(self, x: Tensor) -> Tensor:
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
