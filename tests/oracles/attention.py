"""Sparse attention by loops: one row, one head, one query, one key at a time, in float64.

Imports nothing from tabnsm. Gradients come from torch's autograd through the loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def block_starts(n_features: int, stride: int) -> list[int]:
    return list(range(0, n_features, stride))


def block_members(start: int, size: int, n_features: int) -> list[int]:
    return [f for f in range(start, start + size) if f < n_features]


def attend(query: Tensor, keys: list[Tensor], values: list[Tensor]) -> Tensor:
    scale = 1.0 / math.sqrt(len(query))
    logits = [torch.dot(query, key) * scale for key in keys]
    top = max(float(x.detach()) for x in logits)
    weights = [torch.exp(x - top) for x in logits]
    total = sum(weights)
    return sum(w / total * value for w, value in zip(weights, values, strict=True))


def block_scores(
    query: Tensor,
    k_cmp: Tensor,
    n_features: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
) -> list[float]:
    """Score of each selection block for one query."""
    logits = [float(torch.dot(query, key)) / math.sqrt(len(query)) for key in k_cmp]
    if selection_block_size == compress_block_size == compress_stride:
        return logits
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    scores = []
    for left in block_starts(n_features, selection_block_size):
        selection = set(block_members(left, selection_block_size, n_features))
        score = 0.0
        for weight, start in zip(weights, block_starts(n_features, compress_stride), strict=True):
            compressed = block_members(start, compress_block_size, n_features)
            shared = len(selection.intersection(compressed))
            score += weight / sum(weights) * (shared / len(compressed))
        scores.append(score)
    return scores


def ranked(scores: list[float], n_best: int) -> list[int]:
    """Best scores first; of equal ones the lower index first."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:n_best]


def key_groups(
    n_features: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    max_exact_features: int,
) -> list[list[int]]:
    """Compressed blocks that share a key: as few to a key as leave no more keys than allowed."""
    blocks = list(range(len(block_starts(n_features, compress_stride))))
    if {compress_block_size, compress_stride} != {selection_block_size}:
        return [[block] for block in blocks]
    most = len(block_starts(max_exact_features, compress_stride))
    size = 1
    while len(block_starts(len(blocks), size)) > most:
        size += 1
    return [block_members(start, size, len(blocks)) for start in block_starts(len(blocks), size)]


def group_mean(rows: Sequence[Tensor] | Tensor, group: list[int]) -> Tensor:
    return sum(rows[i] for i in group) / len(group)


def ranked_in_groups(
    query: Tensor, keys: Tensor, groups: list[list[int]], n_best: int
) -> list[int]:
    """Best blocks of the best groups."""
    of_groups = [float(torch.dot(query, group_mean(keys, group))) for group in groups]
    candidates = [i for j in ranked(of_groups, n_best) for i in groups[j]]
    scores = {i: float(torch.dot(query, keys[i])) for i in candidates}
    return sorted(candidates, key=lambda i: (-scores[i], i))[:n_best]


def select_blocks(
    q: Tensor,
    k_cmp: Tensor,
    *,
    n_features: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    max_exact_features: int = 512,
) -> Tensor:
    q, k_cmp = q.detach().double(), k_cmp.detach().double()
    sizes = (compress_block_size, compress_stride, selection_block_size)
    groups = key_groups(n_features, *sizes, max_exact_features)

    def chosen(query: Tensor, keys: Tensor) -> list[int]:
        if len(groups) < len(keys):
            return ranked_in_groups(query, keys, groups, n_selected_blocks)
        return ranked(block_scores(query, keys, n_features, *sizes), n_selected_blocks)

    return torch.tensor(
        [
            [
                [chosen(query, keys) for query in queries]
                for queries, keys in zip(q_row, k_row, strict=True)
            ]
            for q_row, k_row in zip(q, k_cmp, strict=True)
        ]
    )


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
    max_exact_features: int = 512,
) -> Tensor:
    q, k, v, k_cmp, v_cmp, gates = (x.double() for x in (q, k, v, k_cmp, v_cmp, gates))
    n_rows, n_heads, n_features, _ = q.shape
    chosen = select_blocks(
        q,
        k_cmp,
        n_features=n_features,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        max_exact_features=max_exact_features,
    )
    groups = key_groups(
        n_features, compress_block_size, compress_stride, selection_block_size, max_exact_features
    )
    rows = []
    for b in range(n_rows):
        heads = []
        for h in range(n_heads):
            # Taken apart once: the gradient of an index is a tensor of the whole size.
            queries, keys, values = (x[b, h].unbind() for x in (q, k, v))
            keys_cmp, values_cmp = (
                [group_mean(fine, group) for group in groups]
                for fine in (k_cmp[b, h].unbind(), v_cmp[b, h].unbind())
            )
            branches = gates[b, h].unbind()
            outputs = []
            for d in range(n_features):
                near = [f for f in range(n_features) if abs(f - d) <= window_size]
                full = [
                    f
                    for block in chosen[b, h, d].tolist()
                    for f in block_members(
                        block * selection_block_size, selection_block_size, n_features
                    )
                ]
                query = queries[d]
                window = attend(query, [keys[f] for f in near], [values[f] for f in near])
                compressed = attend(query, keys_cmp, values_cmp)
                selected = attend(query, [keys[f] for f in full], [values[f] for f in full])
                g = branches[d]
                outputs.append(g[0] * window + g[1] * compressed + g[2] * selected)
            heads.append(torch.stack(outputs))
        rows.append(torch.stack(heads))
    return torch.stack(rows)
