"""Blocks of neighbouring features: counting, cutting, grouping, overlap, and their options."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from tabnsm.errors import InvalidOptionError

# NOTE[DIFF]: the paper's fixed stride makes the compressed branch quadratic in the features.
MAX_EXACT_FEATURES = 512
"""Widest table, unless said otherwise, in which every compressed block is a key of its own."""


def check_block_options(
    *,
    window_size: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    max_exact_features: int = MAX_EXACT_FEATURES,
) -> None:
    """Raise `InvalidOptionError` when an option of the sparse attention is out of range.

    Parameters
    ----------
    window_size : int
        Neighbours on each side of a feature, at least 1.
    compress_block_size : int
        Features summarised by one compressed key, at least 1.
    compress_stride : int
        Distance between the starts of compressed blocks, from 1 to ``compress_block_size``.
    selection_block_size : int
        Features in a block that is attended at full resolution, at least 1.
    n_selected_blocks : int
        Blocks attended per query, at least 1; more than exist means all.
    max_exact_features : int, default 512
        Features up to which no blocks are grouped, at least 1.

    Examples
    --------
    >>> check_block_options(window_size=0, compress_block_size=10, compress_stride=10,
    ...                     selection_block_size=10, n_selected_blocks=3)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: window_size must be >= 1, got 0. Use 1 or more.
    """
    options = {
        "window_size": window_size,
        "compress_block_size": compress_block_size,
        "compress_stride": compress_stride,
        "selection_block_size": selection_block_size,
        "n_selected_blocks": n_selected_blocks,
        "max_exact_features": max_exact_features,
    }
    for name, value in options.items():
        if value < 1:
            raise InvalidOptionError(f"{name} must be >= 1, got {value}. Use 1 or more.")
    if compress_stride > compress_block_size:
        raise InvalidOptionError(
            f"compress_stride must be <= compress_block_size = {compress_block_size}, "
            f"got {compress_stride}. A larger stride would leave features in no block; "
            f"use {compress_block_size} or less."
        )


def n_blocks(n_features: int, stride: int) -> int:
    """Number of blocks that start at 0, stride, 2 stride, ... below ``n_features``.

    Examples
    --------
    >>> n_blocks(25, 10)
    3
    """
    return -(-n_features // stride)


def blocks_per_key(
    n_features: int,
    *,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    max_exact_features: int = MAX_EXACT_FEATURES,
) -> int:
    """Neighbouring compressed blocks that share one key, so that wide tables have no more keys.

    A query of a table with D features then meets at most
    ``n_blocks(max_exact_features, compress_stride)`` compressed keys, whatever D is. Blocks are
    grouped only where they are the ones to select from, disjoint and of one size: elsewhere a
    block's score is a sum over the blocks that overlap it, which a group does not have.

    Parameters
    ----------
    n_features : int
        Number of features D.
    compress_block_size, compress_stride, selection_block_size : int
        As in `tabnsm.functional.sparse_attention.sparse_attention`.
    max_exact_features : int, default 512
        The result is 1 up to this D.

    Examples
    --------
    >>> sizes = {"compress_block_size": 10, "compress_stride": 10, "selection_block_size": 10}
    >>> [blocks_per_key(n_features, **sizes) for n_features in (400, 512, 1024, 16384)]
    [1, 1, 2, 32]
    """
    if not selection_block_size == compress_block_size == compress_stride:
        return 1
    most = n_blocks(max_exact_features, compress_stride)
    return n_blocks(n_blocks(n_features, compress_stride), most)


def group_means(x: Tensor, group_size: int) -> Tensor:
    """Mean of each run of `group_size` neighbours; the last run may be shorter.

    Parameters
    ----------
    x : Tensor
        Compressed keys or values, (..., C, d).
    group_size : int
        Blocks in a group.

    Returns
    -------
    Tensor
        (..., n_blocks(C, group_size), d); `x` itself for groups of one.

    Examples
    --------
    >>> group_means(torch.tensor([[1.0], [3.0], [7.0]]), 2)
    tensor([[2.],
            [7.]])
    """
    if group_size == 1:
        return x
    groups, mask = unfold_blocks(x, group_size, group_size)  # (..., n_groups, group_size, d)
    return groups.sum(-2) / mask.sum(-1, keepdim=True)


def unfold_blocks(x: Tensor, block_size: int, stride: int) -> tuple[Tensor, Tensor]:
    """Cut features into blocks; the last ones may reach past the end and are padded with zeros.

    Parameters
    ----------
    x : Tensor
        Features, (..., D, d).
    block_size : int
        Features in a block.
    stride : int
        Distance between the starts of blocks, at most ``block_size``.

    Returns
    -------
    blocks : Tensor
        (..., C, block_size, d) with C = ``n_blocks(D, stride)``; a view where no padding is needed.
    mask : Tensor
        (C, block_size), true where a block holds a feature and false where it holds padding.

    Examples
    --------
    >>> blocks, mask = unfold_blocks(torch.ones(2, 5, 3), block_size=4, stride=2)
    >>> blocks.shape
    torch.Size([2, 3, 4, 3])
    >>> mask.sum(1)
    tensor([4, 3, 1])
    """
    n_features = x.shape[-2]
    n = n_blocks(n_features, stride)
    missing = (n - 1) * stride + block_size - n_features
    padded = pad(x, (0, 0, 0, missing)) if missing else x  # (..., D + missing, d)
    blocks = padded.unfold(-2, block_size, stride).transpose(-1, -2)  # (..., C, block_size, d)
    start = torch.arange(n, device=x.device)[:, None] * stride
    mask = start + torch.arange(block_size, device=x.device) < n_features  # (C, block_size)
    return blocks, mask


def block_overlap(
    n_features: int, block_size: int, stride: int, selection_block_size: int
) -> tuple[Tensor, Tensor]:
    """For each selection block, the compressed blocks that overlap it and by which share.

    The share of a compressed block is the fraction of its features, padding not counted, that lie
    in the selection block: the shares of one compressed block add up to 1.

    Parameters
    ----------
    n_features : int
        Number of features D.
    block_size, stride : int
        Width of compressed blocks and the distance between their starts.
    selection_block_size : int
        Width of the disjoint selection blocks.

    Returns
    -------
    index : Tensor
        int64 (S, n_slots): compressed blocks that overlap each selection block, in rising order.
    share : Tensor
        float64 (S, n_slots): their shares; 0 in slots that a selection block does not need.

    Examples
    --------
    >>> index, share = block_overlap(6, block_size=4, stride=2, selection_block_size=3)
    >>> index
    tensor([[0, 1, 2],
            [0, 1, 2]])
    >>> share
    tensor([[0.7500, 0.2500, 0.0000],
            [0.2500, 0.7500, 1.0000]], dtype=torch.float64)
    """
    starts = torch.arange(n_blocks(n_features, stride)) * stride
    stops = (starts + block_size).clamp(max=n_features)
    left = torch.arange(n_blocks(n_features, selection_block_size)) * selection_block_size
    right = (left + selection_block_size).clamp(max=n_features)

    first = torch.searchsorted(stops, left, right=True)  # first block that ends past the left edge
    last = torch.searchsorted(starts, right) - 1  # last block that starts before the right edge
    slots = torch.arange(int((last - first).max()) + 1)
    index = (first[:, None] + slots).clamp(max=len(starts) - 1)  # (S, n_slots)
    shared = torch.minimum(stops[index], right[:, None]) - torch.maximum(
        starts[index], left[:, None]
    )
    share = shared.clamp(min=0).double() / (stops - starts)[index]
    # The clamp above may name the last block twice; only its first mention counts.
    return index, share.masked_fill(first[:, None] + slots > last[:, None], 0.0)
