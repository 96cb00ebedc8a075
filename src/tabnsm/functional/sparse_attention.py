"""Sparse feature-wise attention: window, compressed blocks and selected blocks, gated.

Plain torch for any device. Work is cut into slices of (row, head) pairs that are recomputed in the
backward pass, so that the copies of keys and values per query exist for one slice at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from tabnsm.errors import InvalidOptionError
from tabnsm.functional.block_selection import select_blocks
from tabnsm.functional.blocks import (
    MAX_EXACT_FEATURES,
    blocks_per_key,
    check_block_options,
    group_means,
    n_blocks,
    unfold_blocks,
)
from tabnsm.functional.slices import is_exporting, slices

# Queries of a window tile; wider tiles compute more masked logits, narrower ones copy more keys.
MIN_TILE = 16


def sparse_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cmp: Tensor,
    v_cmp: Tensor,
    gates: Tensor,
    *,
    window_size: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    max_exact_features: int = MAX_EXACT_FEATURES,
) -> Tensor:
    r"""Attend to neighbours, to block summaries and to the best blocks at full resolution.

    .. math:: \tilde X_d = \sum_{c \in \{win, cmp, slc\}} g_d^c \, Attn(q_d, K_d^c, V_d^c)

    Each branch has a softmax of its own over logits scaled by ``d_head ** -0.5``. Gradients reach
    every tensor argument; the choice of blocks itself has none.

    In tables wider than `max_exact_features` neighbouring compressed blocks share a key and a
    value, the means of theirs (see `tabnsm.functional.blocks.blocks_per_key`): without that, the
    compressed branch alone would cost D squared over the stride.

    Parameters
    ----------
    q, k, v : Tensor
        Queries, keys and values of the features, (B, H, D, d_head).
    k_cmp, v_cmp : Tensor
        Keys and values of the compressed blocks, (B, H, C, d_head) with
        C = ``n_blocks(D, compress_stride)``.
    gates : Tensor
        Weights of the branches in the order window, compressed, selected, (B, H, D, 3).
    window_size : int
        A query sees the features at most this far away on either side, and itself.
    compress_block_size, compress_stride : int
        Width of the compressed blocks and the distance between their starts.
    selection_block_size : int
        Width of the disjoint blocks to select from; the last one may be partial.
    n_selected_blocks : int
        Blocks per query and head; all of them when fewer exist.
    max_exact_features : int, default 512
        Features up to which every compressed block is a key of its own.

    Returns
    -------
    Tensor
        (B, H, D, d_head).

    Examples
    --------
    >>> q = torch.ones(1, 1, 4, 2)
    >>> k_cmp = v_cmp = torch.ones(1, 1, 2, 2)
    >>> gates = torch.full((1, 1, 4, 3), 0.5)
    >>> out = sparse_attention(q, q, q, k_cmp, v_cmp, gates, window_size=1, compress_block_size=2,
    ...                        compress_stride=2, selection_block_size=2, n_selected_blocks=1)
    >>> out[0, 0]
    tensor([[1.5000, 1.5000],
            [1.5000, 1.5000],
            [1.5000, 1.5000],
            [1.5000, 1.5000]])
    """
    check_block_options(
        window_size=window_size,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        max_exact_features=max_exact_features,
    )
    n_features, d_head = q.shape[-2:]
    check_shapes(q, k, v, k_cmp, v_cmp, gates, compress_stride=compress_stride)
    selected = select_blocks(
        q,
        k_cmp,
        n_features=n_features,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        max_exact_features=max_exact_features,
    )
    group_size = blocks_per_key(
        n_features,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        max_exact_features=max_exact_features,
    )
    k_cmp, v_cmp = group_means(k_cmp, group_size), group_means(v_cmp, group_size)
    gathered = 2 * selected.shape[-1] * selection_block_size * d_head
    tensors = [x.flatten(0, 1) for x in (q, k, v, k_cmp, v_cmp, gates, selected)]  # (B * H, ...)
    attend: Callable[..., Tensor] = _attend_slice
    if not is_exporting():
        attend = partial(checkpoint, attend, use_reentrant=False, preserve_rng_state=False)
    outputs = []
    for rows in slices(tensors[0].shape[0], n_features * (gathered + 2 * k_cmp.shape[-2])):
        outputs.append(attend(*(x[rows] for x in tensors), window_size, selection_block_size))
    return torch.cat(outputs).view(q.shape)  # (B, H, D, d_head)


def check_shapes(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cmp: Tensor,
    v_cmp: Tensor,
    gates: Tensor,
    *,
    compress_stride: int,
) -> None:
    """Raise `InvalidOptionError` unless the shapes are those that `sparse_attention` documents.

    Examples
    --------
    >>> x, gates = torch.zeros(1, 1, 25, 4), torch.zeros(1, 1, 25, 3)
    >>> check_shapes(  # doctest: +ELLIPSIS
    ...     x, x, x, x[:, :, :2], x[:, :, :3], gates, compress_stride=10
    ... )
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: k_cmp must have the shape (1, 1, 3, 4), got (1, 1, 2, 4). ...
    """
    n_rows, n_heads, n_features, d_head = q.shape
    n_compressed = n_blocks(n_features, compress_stride)
    feature_axes = "rows, heads, features and width"
    block_axes = "rows, heads, blocks (partial ones included) and width"
    for name, x, shape, axes in (
        ("k", k, q.shape, feature_axes),
        ("v", v, q.shape, feature_axes),
        ("k_cmp", k_cmp, (n_rows, n_heads, n_compressed, d_head), block_axes),
        ("v_cmp", v_cmp, (n_rows, n_heads, n_compressed, d_head), block_axes),
        ("gates", gates, (n_rows, n_heads, n_features, 3), "rows, heads, features and branches"),
    ):
        if x.shape != shape:
            raise InvalidOptionError(
                f"{name} must have the shape {tuple(shape)}, got {tuple(x.shape)}. "
                f"Its axes are {axes}."
            )


def _attend_slice(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cmp: Tensor,
    v_cmp: Tensor,
    gates: Tensor,
    selected: Tensor,
    window_size: int,
    selection_block_size: int,
) -> Tensor:
    """Gated sum of the three branches for some (row, head) pairs."""
    q = q * q.shape[-1] ** -0.5
    window = _window_branch(q, k, v, window_size)
    compressed = torch.softmax(q @ k_cmp.transpose(-1, -2), dim=-1) @ v_cmp
    chosen = _selected_branch(q, k, v, selected, selection_block_size)
    return gates[..., 0:1] * window + gates[..., 1:2] * compressed + gates[..., 2:3] * chosen


def _window_branch(q: Tensor, k: Tensor, v: Tensor, window_size: int) -> Tensor:
    """Tiles of queries against the strip of keys that any of them may see."""
    n_features = q.shape[1]
    reach = min(window_size, n_features - 1)
    tile = max(MIN_TILE, reach)
    n_tiles = n_blocks(n_features, tile)
    missing = n_tiles * tile - n_features
    strip = tile + 2 * reach

    queries = pad(q, (0, 0, 0, missing)).view(
        q.shape[0], n_tiles, tile, -1
    )  # (G, n_tiles, tile, d)
    keys = pad(k, (0, 0, reach, reach + missing)).unfold(1, strip, tile)  # (G, n_tiles, d, strip)
    values = pad(v, (0, 0, reach, reach + missing)).unfold(1, strip, tile)

    query_at = torch.arange(tile, device=q.device)[:, None]
    key_at = torch.arange(strip, device=q.device) - reach
    feature = key_at + tile * torch.arange(n_tiles, device=q.device)[:, None]  # (n_tiles, strip)
    near = (key_at - query_at).abs() <= reach  # (tile, strip)
    seen = near & ((feature >= 0) & (feature < n_features))[:, None]  # (n_tiles, tile, strip)

    # The lowest finite number, not -inf: a padded query may see no key, and 0/0 would then
    # poison the gradients of the real ones.
    logits = (queries @ keys).masked_fill(~seen, torch.finfo(q.dtype).min)
    out = torch.softmax(logits, dim=-1) @ values.transpose(-1, -2)  # (G, n_tiles, tile, d)
    return out.flatten(1, 2)[:, :n_features]  # (G, D, d)


def _selected_branch(q: Tensor, k: Tensor, v: Tensor, selected: Tensor, block_size: int) -> Tensor:
    """Softmax over the features of the selected blocks of each query."""
    n_groups, n_features, n_best = selected.shape
    key_blocks, mask = unfold_blocks(k, block_size, block_size)  # (G, S, block_size, d)
    value_blocks, _ = unfold_blocks(v, block_size, block_size)
    first = torch.arange(n_groups, device=q.device)[:, None, None] * key_blocks.shape[1]
    rows = (first + selected).flatten()
    shape = (n_groups, n_features, n_best * block_size, -1)
    # index_select on whole blocks: its backward is one index_add_ into the unexpanded tensor.
    keys = key_blocks.flatten(0, 1).index_select(0, rows).view(shape)
    values = value_blocks.flatten(0, 1).index_select(0, rows).view(shape)
    logits = (keys @ q.unsqueeze(-1)).squeeze(-1)  # (G, D, n_best * block_size)
    logits = logits.masked_fill(~mask[selected].flatten(2), -torch.inf)
    return (torch.softmax(logits, dim=-1).unsqueeze(-2) @ values).squeeze(-2)  # (G, D, d)
