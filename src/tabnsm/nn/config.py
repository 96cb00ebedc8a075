"""The architecture's options, their defaults and their rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tabnsm.functional.blocks import MAX_EXACT_FEATURES
from tabnsm.rules import is_integer, require, require_one_of

MAX_TOKEN_POOLS = 512
"""Parts of tokens of all features together that the head sees beside them."""
HEAD_WIDTH, NARROW_HEAD_WIDTH, NARROW_FEATURES = 256, 128, 100
"""Inner width of the head, and that for tables of up to so many features."""
SMALL_HEAD_WIDTH, SMALL_ROWS = 64, 150
"""The same for tables of up to so many rows."""
Attention = Literal["sparse", "full", "mamba"]
Gates = Literal["head", "feature"]


@dataclass(frozen=True)
class ArchitectureConfig:
    """Options of `tabnsm.nn.TabNSM`; the estimator has them under the same names.

    Parameters
    ----------
    d_token : int, default 32
        Width of a feature's token; a multiple of `n_heads`.
    n_heads : int, default 4
    attention : {"sparse", "full", "mamba"}, default "sparse"
        Operator over the features; the last two are the paper's ablation.
    window_size : int, default 6
        Features on either side that every feature attends to.
    compress_block_size : int, default 10
        Features that one compressed key stands for.
    compress_stride : int or None, default None
        Distance of the blocks' starts, at most the block size; None is the block size.
    selection_block_size : int, default 10
    n_selected_blocks : int, default 3
        Blocks that a feature attends to at full resolution.
    max_exact_features : int, default 512
        Features up to which every compressed block is a key of its own; in wider tables
        neighbouring blocks share one, so that there are no more keys than at this width.
    gates : {"head", "feature"}, default "head"
        Whether each head weighs the three branches by itself, or a feature's heads share.
    mixer : bool, default True
        Whether Feature-Token Mixing follows the attention.
    mixer_chunk_size : int, default 64
        Features that are mixed with each other.
    n_token_pools : int, default 8
        Numbers per feature that the head sees of its token, beside the one that the interaction
        makes: the means of so many equal parts, a power of two, or 0. Half as many, or a quarter,
        where that would be more than 512 in all or where tokens cannot be cut so.
    head_width : int or "auto", default "auto"
        Inner width of the regression head's maps; "auto" is 64 for up to 150 rows to train on,
        else 128 for up to 100 features, else 256.

    Examples
    --------
    >>> ArchitectureConfig(n_heads=5)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: d_token must be a multiple of n_heads (5), got 32.
    """

    d_token: int = 32
    n_heads: int = 4
    attention: Attention = "sparse"
    window_size: int = 6
    compress_block_size: int = 10
    compress_stride: int | None = None
    selection_block_size: int = 10
    n_selected_blocks: int = 3
    max_exact_features: int = MAX_EXACT_FEATURES
    gates: Gates = "head"
    mixer: bool = True
    mixer_chunk_size: int = 64
    # NOTE[DIFF]: the paper's head sees one number per feature, too few in narrow tables.
    n_token_pools: int = 8
    # NOTE[DIFF]: the paper is silent. The head has most of the weights, and much of a step's time.
    head_width: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        for name in (
            "d_token",
            "n_heads",
            "window_size",
            "compress_block_size",
            "selection_block_size",
            "n_selected_blocks",
            "max_exact_features",
            "mixer_chunk_size",
        ):
            value = getattr(self, name)
            require(is_integer(value, 1), f"{name} must be an integer >= 1", value)
        width = self.head_width
        rule = 'head_width must be "auto" or an integer >= 1'
        require(width == "auto" or is_integer(width, 1), rule, width)
        parts = self.n_token_pools
        is_power = is_integer(parts, 0) and not parts & (parts - 1)
        require(is_power, "n_token_pools must be 0 or a power of two", parts)
        require(
            self.d_token % self.n_heads == 0,
            f"d_token must be a multiple of n_heads ({self.n_heads})",
            self.d_token,
        )
        require(
            self.compress_stride is None
            or (
                is_integer(self.compress_stride, 1)
                and self.compress_stride <= self.compress_block_size
            ),
            "compress_stride must be None or an integer from 1 to compress_block_size "
            f"({self.compress_block_size})",
            self.compress_stride,
        )
        require_one_of("attention", self.attention, get_args(Attention))
        require_one_of("gates", self.gates, get_args(Gates))
        require_one_of("mixer", self.mixer, (True, False))

    @property
    def d_head(self) -> int:
        """Width of one head."""
        return self.d_token // self.n_heads

    def resolved_pools(self, n_features: int) -> int:
        """Parts of the tokens of `n_features` features that the head sees.

        Examples
        --------
        >>> [ArchitectureConfig().resolved_pools(n) for n in (10, 64, 84, 228, 400, 600)]
        [8, 8, 4, 2, 1, 0]
        """
        parts = self.n_token_pools
        while parts and (parts * n_features > MAX_TOKEN_POOLS or self.d_token % parts):
            parts //= 2
        return parts

    def resolved_width(self, n_features: int, n_rows: int | None = None) -> int:
        """Inner width of the head for so many features and rows to train on; None is many rows.

        Examples
        --------
        >>> [ArchitectureConfig().resolved_width(100, n) for n in (80, 150, 151, None)]
        [64, 64, 128, 128]
        >>> ArchitectureConfig().resolved_width(101)
        256
        """
        if self.head_width != "auto":
            return self.head_width
        if n_rows is not None and n_rows <= SMALL_ROWS:
            return SMALL_HEAD_WIDTH
        return NARROW_HEAD_WIDTH if n_features <= NARROW_FEATURES else HEAD_WIDTH

    def head_units(self, n_features: int, n_targets: int) -> int:
        """Inner width of the head; several targets share twice as many units."""
        return self.resolved_width(n_features) * (1 if n_targets == 1 else 2)

    @property
    def resolved_stride(self) -> int:
        """The stride that is used: that of the blocks unless one was given."""
        return self.compress_stride or self.compress_block_size
