"""Networks in operators that ONNX has, for any number of rows: no compiled kernel, no tiles."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tabnsm.functional.blocks import blocks_per_key, n_blocks
from tabnsm.functional.sparse_attention import sparse_attention
from tabnsm.functional.tokens import affine_tokens, category_tokens
from tabnsm.nn.attention import SparseAttention, merge_heads
from tabnsm.nn.interaction import AdaptiveSparseInteraction
from tabnsm.nn.model import TabNSM
from tabnsm.nn.tokenizer import FeatureTokenizer

MAX_LOGITS, MAX_ROWS = 2**22, 256
"""Logits of one head, and rows, that a run should have at most."""


def rows_per_run(n_features: int) -> int:
    """Rows at a time that keep the memory of a run within some hundred megabytes.

    Examples
    --------
    >>> [rows_per_run(n) for n in (12, 400, 16384)]
    [256, 26, 1]
    """
    return max(1, min(MAX_ROWS, MAX_LOGITS // n_features**2))


class OnnxNetwork(nn.Module):
    """A network with the weights, and to rounding the predictions, of a `TabNSM`.

    Parameters
    ----------
    network : TabNSM
        Not changed; its weights are shared.

    Shape
    -----
    (B, D) -> (B, t)

    Examples
    --------
    >>> network, x = TabNSM(n_features=45, d_token=16).eval(), torch.randn(4, 45)
    >>> torch.allclose(OnnxNetwork(network)(x), network(x), atol=1e-5)
    True
    """

    def __init__(self, network: TabNSM) -> None:
        super().__init__()
        self.tokenizer = OnnxTokenizer(network.tokenizer)
        self.interaction = _with_attention(network.interaction, network.n_features)
        self.n_pools = network.n_pools
        self.head = network.head

    def forward(self, features: Tensor) -> Tensor:
        """Standardised predictions."""
        return self.head.predict(self.summary(features))

    def summary(self, features: Tensor) -> Tensor:
        """What the head sees, (B, D * (1 + n_pools))."""
        return self.interaction.composed(self.tokenizer(features), self.n_pools)


class OnnxTokenizer(nn.Module):
    """Tokens of `FeatureTokenizer`, without an assignment to a part of a tensor or a search.

    Shape
    -----
    (B, D) -> (B, D, d_token)
    """

    order: Tensor
    slopes: Tensor
    place: Tensor

    def __init__(self, tokenizer: FeatureTokenizer) -> None:
        super().__init__()
        t = self.tokenizer = tokenizer
        self.register_buffer("order", torch.cat([t.numeric, t.categorical]).argsort())
        if len(t.binned):
            slopes = t.slopes.new_zeros(t.low.numel(), t.slopes.shape[1])
            slopes = slopes.index_copy(0, t.used, t.slopes.detach())
            self.register_buffer("slopes", slopes.view(*t.low.shape, -1))  # (P, n_bins, d_token)
            place = torch.full((tokenizer.n_features,), len(t.binned))
            self.register_buffer(
                "place", place.index_copy(0, t.binned, torch.arange(len(t.binned)))
            )

    def forward(self, x: Tensor) -> Tensor:
        t, parts = self.tokenizer, []
        if len(t.numeric):
            numbers = x.index_select(1, t.numeric)
            parts.append(affine_tokens(numbers, t.weight, t.bias[t.numeric]))
        if len(t.categorical):
            codes = x.index_select(1, t.categorical).clamp(min=0.0).minimum(t.code_limits)
            parts.append(category_tokens(codes, t.table, t.offsets, t.bias[t.categorical]))
        tokens = torch.cat(parts, dim=1).index_select(1, self.order)  # (B, D, d_token)
        if not len(t.binned):
            return tokens
        past = x.index_select(1, t.binned).unsqueeze(-1) - t.low  # (B, P, n_bins)
        share = (past / t.width).clamp(0.0, 1.0)
        added = (share.transpose(0, 1) @ self.slopes).transpose(0, 1)  # (B, P, d_token)
        # Not index_add: onnxscript's optimizer takes one that reaches all features for their value.
        padded = nn.functional.pad(added, (0, 0, 0, 1))  # (B, P + 1, d_token)
        return tokens + padded.index_select(1, self.place)


class OnnxAttention(nn.Module):
    """Sparse attention with all logits of a row at once, which is the faster way in ONNX.

    A block that is not selected is masked. Tables of so many features that blocks share keys go by
    `tabnsm.functional.sparse_attention`, as do blocks of several sizes.

    Shape
    -----
    (B, D, d_token) -> (B, D, d_token)
    """

    is_far: Tensor
    block: Tensor
    blocks: Tensor

    def __init__(self, attention: SparseAttention, n_features: int) -> None:
        super().__init__()
        self.attention = attention
        c = attention.config
        self.sizes = {
            "compress_block_size": c.compress_block_size,
            "compress_stride": c.resolved_stride,
            "selection_block_size": c.selection_block_size,
            "max_exact_features": c.max_exact_features,
        }
        places = torch.arange(n_features)
        self.register_buffer("is_far", (places[:, None] - places).abs() > c.window_size)  # (D, D)
        self.register_buffer("block", places // c.selection_block_size)  # (D,)
        self.register_buffer("blocks", torch.arange(n_blocks(n_features, c.selection_block_size)))
        alike = c.compress_block_size == c.resolved_stride == c.selection_block_size
        self.is_dense = alike and blocks_per_key(n_features, **self.sizes) == 1

    def forward(self, tokens: Tensor) -> Tensor:
        a, c = self.attention, self.attention.config
        q, k, v, gates = a.project(tokens)
        compressed = a.compress_k(k), a.compress_v(v)  # (B, H, C, d_head)
        if self.is_dense:
            attended = self._attend(q, k, v, *compressed, gates)
        else:
            attended = sparse_attention(
                q,
                k,
                v,
                compressed[0],
                compressed[1],
                gates,
                window_size=c.window_size,
                n_selected_blocks=c.n_selected_blocks,
                **self.sizes,
            )
        mixed: Tensor = a.out(merge_heads(attended))  # (B, D, d_token)
        return mixed

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, k_cmp: Tensor, v_cmp: Tensor, gates: Tensor
    ) -> Tensor:
        scale, lowest = q.shape[-1] ** -0.5, torch.finfo(q.dtype).min
        summaries = q @ k_cmp.transpose(-1, -2)  # (B, H, D, C)
        logits = (q @ k.transpose(-1, -2)) * scale  # (B, H, D, D)
        window = torch.softmax(logits.masked_fill(self.is_far, lowest), dim=-1) @ v
        compressed = torch.softmax(summaries * scale, dim=-1) @ v_cmp
        n_best = self.attention.config.n_selected_blocks
        if len(self.blocks) > n_best:
            # ONNX defines that of equal logits the lower index comes first.
            best = summaries.topk(n_best, dim=-1).indices  # (B, H, D, n_best)
            chosen = (best.unsqueeze(-1) == self.blocks).any(-2)  # (B, H, D, C)
            logits = logits.masked_fill(~chosen.index_select(-1, self.block), lowest)
        selected = torch.softmax(logits, dim=-1) @ v
        return gates[..., 0:1] * window + gates[..., 1:2] * compressed + gates[..., 2:3] * selected


def _with_attention(
    interaction: AdaptiveSparseInteraction, n_features: int
) -> AdaptiveSparseInteraction:
    """The same interaction, with shared weights, in operators that ONNX has."""
    if not isinstance(interaction.attention, SparseAttention):
        return interaction
    view = copy.copy(interaction)
    view._modules = dict(interaction._modules)
    view._modules["attention"] = OnnxAttention(interaction.attention, n_features)
    return view
