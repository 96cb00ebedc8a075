"""Arithmetic of a training step, and the machine's own peak of a matrix product.

Multiplications and additions of the paper's network, whatever way the code takes: a product that
clever algebra leaves out counts as done. Elementwise work (norms, activations, softmax) counts for
nothing, as is usual for such shares.
"""

from __future__ import annotations

import torch
from measure import in_turns

from tabnsm.functional.blocks import blocks_per_key, n_blocks
from tabnsm.nn import TabNSM

# A product y = x W costs as much again for each of the gradients of x and W.
PRODUCT_STEP = 3
# Attention: 2 products forward (logits, values); 5 backward (logits again, and the gradients of
# the probabilities, queries, keys and values).
ATTENTION_STEP = 3.5
MATRIX = 2048


def product_flops(model: TabNSM) -> float:
    """Forward FLOPs for one row of all products with weights."""
    c, n_features = model.config, model.n_features
    d_token, d_head, stride = c.d_token, c.d_head, c.resolved_stride
    projections = n_features * d_token * (3 * d_token + 3 * c.n_heads + d_token)  # qkv, gates, out
    hidden = 2 * d_head
    per_block = c.compress_block_size * d_head * hidden + hidden * d_head
    compression = 2 * c.n_heads * n_blocks(n_features, stride) * per_block  # keys and values
    mixer = 0
    if c.mixer:
        chunk = min(c.mixer_chunk_size, n_features)
        padded = n_blocks(n_features, chunk) * chunk
        mixer = 2 * d_token * (n_features * d_token + padded * chunk)
    head = sum(p.numel() for p in model.head.parameters() if p.ndim == 2)
    return 2.0 * (projections + compression + mixer + head)


def attention_flops(model: TabNSM) -> float:
    """Forward FLOPs for one row of the logits and the weighted values of all three branches."""
    c, n_features = model.config, model.n_features
    group = blocks_per_key(
        n_features,
        compress_block_size=c.compress_block_size,
        compress_stride=c.resolved_stride,
        selection_block_size=c.selection_block_size,
        max_exact_features=c.max_exact_features,
    )
    compressed = n_features * n_blocks(n_blocks(n_features, c.resolved_stride), group)
    reach = min(c.window_size, n_features - 1)
    window = n_features * (2 * reach + 1) - reach * (reach + 1)  # clipped at both ends
    selected = n_features * min(c.n_selected_blocks * c.selection_block_size, n_features)
    return 4.0 * c.d_token * (compressed + window + selected)


def step_flops(model: TabNSM, n_rows: int) -> float:
    """FLOPs of one training step."""
    per_row = PRODUCT_STEP * product_flops(model) + ATTENTION_STEP * attention_flops(model)
    return n_rows * per_row


def matrix_peak(seconds: float) -> float:
    """FLOP/s of a product of two large float32 matrices with torch's threads."""
    a, b = torch.randn(MATRIX, MATRIX), torch.randn(MATRIX, MATRIX)
    out = torch.empty(MATRIX, MATRIX)
    torch.mm(a, b, out=out)
    time = in_turns({"mm": lambda: torch.mm(a, b, out=out)}, seconds=seconds)["mm"]
    return 2.0 * MATRIX**3 / time
