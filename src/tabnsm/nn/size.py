"""How large a network will be, before it is made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tabnsm.nn.attention import OPERATORS
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.head import MultiStageHead
from tabnsm.nn.interaction import AdaptiveSparseInteraction
from tabnsm.nn.mixer import FeatureTokenMixer


def count_weights(
    config: ArchitectureConfig,
    n_features: int,
    category_sizes: Sequence[int] | None = None,
    bins: Tensor | None = None,
    n_targets: int = 1,
) -> int:
    """Number of weights of a `TabNSM`, without memory for any of them.

    Parameters
    ----------
    config : ArchitectureConfig
    n_features : int
    category_sizes : sequence of int or None
    bins : Tensor or None
    n_targets : int
        As for `TabNSM`.

    Returns
    -------
    int

    Raises
    ------
    OverflowError
        If the weights have more bytes than there are addresses.

    Examples
    --------
    >>> count_weights(ArchitectureConfig(d_token=8, head_width=16), 3)
    3605
    """
    d_token, width = config.d_token, n_features * (1 + config.resolved_pools(n_features))
    try:
        with torch.device("meta"):
            attention = OPERATORS[config.attention](config, None)
            mixer = None
            if config.mixer:
                mixer = FeatureTokenMixer(n_features, d_token, config.mixer_chunk_size)
            parts: list[nn.Module] = [
                AdaptiveSparseInteraction(attention, mixer, d_token),
                MultiStageHead(
                    width, config.head_units(n_features, n_targets), n_targets=n_targets
                ),
            ]
    except (RuntimeError, TypeError) as error:  # what torch makes of sizes beyond its integers
        raise OverflowError(str(error)) from error
    sizes = [0] * n_features if category_sizes is None else list(category_sizes)
    n_tokens = n_features + sizes.count(0) + sum(sizes)
    if bins is not None:
        n_tokens += int(torch.isfinite(bins[:, 0]).sum())
    return n_tokens * d_token + sum(w.numel() for part in parts for w in part.parameters())
