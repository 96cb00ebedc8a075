"""Selection of the blocks that a query attends to at full resolution."""

from __future__ import annotations

import torch
from torch import Tensor

from tabnsm.functional.blocks import (
    MAX_EXACT_FEATURES,
    block_overlap,
    blocks_per_key,
    group_means,
    n_blocks,
    unfold_blocks,
)
from tabnsm.functional.slices import slices


@torch.no_grad()
def select_blocks(
    q: Tensor,
    k_cmp: Tensor,
    *,
    n_features: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    max_exact_features: int = MAX_EXACT_FEATURES,
) -> Tensor:
    """Rank the selection blocks for each query by the attention to their summaries.

    The score of a block is the softmax mass of the compressed blocks that overlap it, in
    proportion to the overlap. With equal sizes and no overlap that is the order of the logits,
    which are compared instead because the softmax of distant logits underflows into ties.

    Where blocks share a key (see `tabnsm.functional.blocks.blocks_per_key`) the groups are ranked
    first, by the logits of their keys, and then the blocks of the best `n_selected_blocks` groups,
    by their own.

    Parameters
    ----------
    q : Tensor
        Queries, (B, H, D, d_head).
    k_cmp : Tensor
        Compressed keys, (B, H, C, d_head).
    n_features : int
        Number of features D that the blocks divide.
    compress_block_size, compress_stride, selection_block_size, n_selected_blocks : int
    max_exact_features : int, default 512
        As in `tabnsm.functional.sparse_attention.sparse_attention`.

    Returns
    -------
    Tensor
        int64 (B, H, D, min(n_selected_blocks, n_blocks(D, selection_block_size))), best first;
        of equal scores the lower index comes first.

    Examples
    --------
    >>> q = torch.ones(1, 1, 6, 1)
    >>> k_cmp = torch.tensor([1.0, 3.0, 3.0]).view(1, 1, 3, 1)
    >>> select_blocks(q, k_cmp, n_features=6, compress_block_size=2, compress_stride=2,
    ...               selection_block_size=2, n_selected_blocks=2)[0, 0, 0]
    tensor([1, 2])
    """
    n_best = min(n_selected_blocks, n_blocks(n_features, selection_block_size))
    group_size = blocks_per_key(
        n_features,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        max_exact_features=max_exact_features,
    )
    queries, keys = q.flatten(0, 1), k_cmp.flatten(0, 1)  # (B * H, D or C, d_head)
    if group_size > 1:
        chosen = _select_in_groups(queries, keys, group_size, n_best)
    elif selection_block_size == compress_block_size == compress_stride:
        chosen = _select_by_logit(queries, keys, n_best)
    else:
        overlap = block_overlap(
            n_features, compress_block_size, compress_stride, selection_block_size
        )
        chosen = _select_by_mass(queries, keys, *overlap, n_best)
    return chosen.view(*q.shape[:-1], n_best)  # (B, H, D, n_best)


def _select_by_logit(queries: Tensor, keys: Tensor, n_best: int) -> Tensor:
    """Keys with the largest products with each query, (B * H, D, n_best)."""
    chosen = []
    for rows in slices(queries.shape[0], 2 * queries.shape[1] * keys.shape[1]):
        logits = queries[rows] @ keys[rows].transpose(-1, -2)  # (G, D, C)
        chosen.append(_top_blocks(logits, n_best))
    return torch.cat(chosen)


def _select_by_mass(
    queries: Tensor, keys: Tensor, index: Tensor, share: Tensor, n_best: int
) -> Tensor:
    """Blocks with the most softmax mass of the keys that overlap them, (B * H, D, n_best)."""
    index, share = index.to(queries.device), share.to(queries)
    chosen = []
    for rows in slices(queries.shape[0], queries.shape[1] * (keys.shape[1] + len(index))):
        logits = queries[rows] @ keys[rows].transpose(-1, -2)  # (G, D, C)
        mass = torch.softmax(logits * queries.shape[-1] ** -0.5, dim=-1)
        # Slot by slot, not as a matrix product: equal sums must come out equal to the bit,
        # or ties (several selection blocks inside one compressed block) would break anyhow.
        scores = torch.zeros_like(mass[..., :1])
        for slot in range(index.shape[1]):
            scores = scores + mass[..., index[:, slot]] * share[:, slot]  # (G, D, S)
        chosen.append(_top_blocks(scores, n_best))
    return torch.cat(chosen)


def _select_in_groups(queries: Tensor, keys: Tensor, group_size: int, n_best: int) -> Tensor:
    """Keys with the largest products among those of the groups whose means have the largest."""
    means = group_means(keys, group_size)  # (B * H, n_groups, d_head)
    n_pairs, n_groups, d_head = means.shape
    # In rising order, so that of equal keys the first is the one with the lower index.
    groups = _select_by_logit(queries, means, min(n_best, n_groups)).sort(dim=-1).values
    members, mask = unfold_blocks(keys, group_size, group_size)  # (B * H, n_groups, g, d_head)
    members = members.flatten(0, 1)
    first = torch.arange(n_pairs, device=keys.device)[:, None, None] * n_groups
    at = (first + groups).flatten(0, 1)  # (B * H * D, n_best groups), rows of `members`
    groups, queries = groups.flatten(0, 1), queries.flatten(0, 1)
    place = torch.arange(group_size, device=keys.device)
    n_candidates = groups.shape[1] * group_size
    chosen = []
    for rows in slices(queries.shape[0], n_candidates * (d_head + 6)):
        candidates = members[at[rows]].flatten(1, 2)  # (Q, n_candidates, d_head)
        logits = (candidates @ queries[rows].unsqueeze(-1)).squeeze(-1)  # (Q, n_candidates)
        logits = logits.masked_fill(~mask[groups[rows]].flatten(1), -torch.inf)
        index = (groups[rows].unsqueeze(-1) * group_size + place).flatten(1)
        chosen.append(index.gather(-1, _top_blocks(logits, n_best)))
    return torch.cat(chosen)  # (B * H * D, n_best)


def _top_blocks(scores: Tensor, n_best: int) -> Tensor:
    """Indices of the largest scores; argmax takes the first of equals, which topk does not."""
    scores = scores.clone()
    best = []
    for _ in range(n_best):
        best.append(scores.argmax(dim=-1, keepdim=True))
        scores.scatter_(-1, best[-1], -torch.inf)
    return torch.cat(best, dim=-1)  # (G, D, n_best)
