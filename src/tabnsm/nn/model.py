"""TabNSM: tokenizer, ASIM and head as one torch module."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.nn.attention import OPERATORS
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.head import MultiStageHead, OneOutput
from tabnsm.nn.interaction import AdaptiveSparseInteraction
from tabnsm.nn.mixer import FeatureTokenMixer
from tabnsm.nn.tokenizer import FeatureTokenizer
from tabnsm.rules import is_integer, require


class TabNSM(nn.Module):
    """The paper's network: (B, D) encoded features to (B, t) predictions.

    Parameters
    ----------
    n_features : int
        D, the number of encoded features.
    category_sizes : sequence of int or None
        One entry per feature: 0 for a number, else the number of codes of a category, whose
        codes then come as whole floats. None means numbers only.
    bins : Tensor or None
        Left ends and widths of the bins of each number's token, (D, 2, n_bins); see
        `FeatureTokenizer`. None means affine tokens.
    n_targets : int, default 1
        t, the number of targets.
    generator : torch.Generator or None
        Source of the starting weights; None is torch's own.
    **architecture
        Options of `ArchitectureConfig`, the same as the estimator's.

    Shape
    -----
    (B, D) -> (B, t)

    Examples
    --------
    >>> model = TabNSM(n_features=30, d_token=16)
    >>> model(torch.randn(4, 30)).shape
    torch.Size([4, 1])
    """

    def __init__(
        self,
        n_features: int,
        *,
        category_sizes: Sequence[int] | None = None,
        bins: Tensor | None = None,
        n_targets: int = 1,
        generator: Generator | None = None,
        **architecture: Any,
    ) -> None:
        super().__init__()
        require(is_integer(n_features, 1), "n_features must be an integer >= 1", n_features)
        require(is_integer(n_targets, 1), "n_targets must be an integer >= 1", n_targets)
        if category_sizes is not None and len(category_sizes) != n_features:
            raise InvalidOptionError(
                f"category_sizes must have one entry per feature ({n_features}), "
                f"got {len(category_sizes)}."
            )
        self.config = config = ArchitectureConfig(**architecture)
        self.n_features = n_features
        self.n_targets = n_targets
        self.tokenizer = FeatureTokenizer(
            n_features, config.d_token, category_sizes, bins, generator
        )
        mixer = (
            FeatureTokenMixer(n_features, config.d_token, config.mixer_chunk_size, generator)
            if config.mixer
            else None
        )
        attention = OPERATORS[config.attention](config, generator)
        self.interaction = AdaptiveSparseInteraction(attention, mixer, config.d_token)
        self.n_pools = config.resolved_pools(n_features)
        n_inputs = n_features * (1 + self.n_pools)
        n_units = config.head_units(n_features, n_targets)
        self.head = MultiStageHead(n_inputs, n_units, generator, n_targets)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InvalidDataError(
                f"x must have the shape (n_rows, {self.n_features}), one column per feature, "
                f"got {tuple(x.shape)}."
            )
        return self.from_tokens(self.tokenizer(x))  # (B, t)

    def from_tokens(self, tokens: Tensor) -> Tensor:
        """What follows the tokenizer, (B, D, d_token) -> (B, t)."""
        features = self.interaction(tokens, self.n_pools)  # (B, D * (1 + n_pools))
        prediction: Tensor = self.head(features)  # (B, t)
        return prediction

    def for_target(self, place: int) -> TabNSM:
        """The same network, with shared weights, of which only one target is predicted, (B, 1).

        Examples
        --------
        >>> network, x = TabNSM(n_features=3, d_token=8, n_targets=2), torch.randn(4, 3)
        >>> torch.equal(network.for_target(1)(x), network(x)[:, 1:])
        True
        """
        view = copy.copy(self)
        view._modules = dict(self._modules)
        view._modules["head"] = OneOutput(self.head, place)
        view.n_targets = 1
        return view

    @property
    def rows_are_independent(self) -> bool:
        """Whether predictions without gradients are the same, to the bit, in any batch."""
        return self.interaction.runs_compiled(self.tokenizer.bias)

    def selected_blocks(self, x: Tensor) -> Tensor:
        """Blocks of features that each feature of each row attends to, (B, H, D, m)."""
        attention = self.interaction.attention
        if self.config.attention != "sparse":
            raise InvalidOptionError(
                f'selected_blocks needs attention="sparse", got {self.config.attention!r}.'
            )
        with torch.no_grad():
            tokens = self.interaction.norm(self.tokenizer(x))
            blocks: Tensor = attention.selected_blocks(tokens)  # type: ignore[operator]
        return blocks
