"""Blocks of neighbouring features: counting, cutting, overlap and the check of their options."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from tabnsm.errors import InvalidOptionError


def check_block_options(
    *,
    window_size: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
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
