"""The three operators over the feature axis: sparse (the paper's), full, and mamba."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from tabnsm.functional.block_selection import select_blocks
from tabnsm.functional.blocks import unfold_blocks
from tabnsm.functional.selective_scan import selective_scan
from tabnsm.kernels import sparse_attention
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.linear import Linear, Projection, shallow_mlp, uniform_parameter

N_BRANCHES = 3


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """View (B, D, n_heads * d_head) as (B, n_heads, D, d_head)."""
    return x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Turn (B, n_heads, D, d_head) into (B, D, n_heads * d_head)."""
    return x.transpose(1, 2).flatten(2)


class BlockCompressor(nn.Module):
    """The paper's learnable MLP that turns a block of keys or values into one.

    A learned offset per place tells the members of a block apart; places beyond the last
    feature are zeroed after it.

    Shape
    -----
    (B, H, D, d_head) -> (B, H, n_blocks, d_head)
    """

    def __init__(
        self, d_head: int, block_size: int, stride: int, generator: Generator | None = None
    ) -> None:
        super().__init__()
        self.block_size, self.stride = block_size, stride
        self.offset = uniform_parameter(block_size, d_head, bound=0.1, generator=generator)
        self.mlp = shallow_mlp(block_size * d_head, 2 * d_head, d_head, generator)

    def forward(self, x: Tensor) -> Tensor:
        blocks, mask = unfold_blocks(x, self.block_size, self.stride)  # (B, H, C, b, d_head)
        placed = (blocks + self.offset) * mask.unsqueeze(-1)
        compressed: Tensor = self.mlp(placed.flatten(-2))  # (B, H, C, d_head)
        return compressed


class SparseAttention(nn.Module):
    """Window, compressed blocks and top blocks at full resolution, joined by sigmoid gates.

    Shape
    -----
    (B, D, d_token) -> (B, D, d_token)

    Examples
    --------
    >>> SparseAttention(ArchitectureConfig(d_token=16))(torch.rand(2, 25, 16)).shape
    torch.Size([2, 25, 16])
    """

    def __init__(self, config: ArchitectureConfig, generator: Generator | None = None) -> None:
        super().__init__()
        c = self.config = config
        self.qkv = Projection(c.d_token, 3 * c.d_token, generator)
        self.compress_k = BlockCompressor(
            c.d_head, c.compress_block_size, c.resolved_stride, generator
        )
        self.compress_v = BlockCompressor(
            c.d_head, c.compress_block_size, c.resolved_stride, generator
        )
        self.n_gates = c.n_heads if c.gates == "head" else 1
        self.gate = Linear(c.d_token, self.n_gates * N_BRANCHES, generator)
        self.out = Projection(c.d_token, c.d_token, generator)

    def project(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys and values per head, and the gates of the three branches."""
        query, key, value = self.qkv(tokens).chunk(3, dim=-1)  # each (B, D, d_token)
        n_heads = self.config.n_heads
        gates = torch.sigmoid(self.gate(query))  # (B, D, n_gates * 3)
        gates = split_heads(gates, self.n_gates).expand(-1, n_heads, -1, -1)  # (B, H, D, 3)
        q, k, v = (split_heads(part, n_heads) for part in (query, key, value))
        return q, k, v, gates

    def kernel_parameters(self) -> dict[str, Tensor]:
        """The parameters by the names of `tabnsm.kernels.interaction`."""
        named: dict[str, Tensor] = {
            "qkv": self.qkv.weight,
            "gate_weight": self.gate.weight,
            "gate_bias": self.gate.bias,
            "out": self.out.weight,
        }
        for letter, compressor in (("k", self.compress_k), ("v", self.compress_v)):
            named[f"{letter}_offset"] = compressor.offset
            for place, layer in (("1", compressor.mlp[0]), ("2", compressor.mlp[2])):
                assert isinstance(layer, Linear)
                named[f"{letter}_weight{place}"] = layer.weight
                named[f"{letter}_bias{place}"] = layer.bias
        return named

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v, gates = self.project(tokens)
        c = self.config
        attended = sparse_attention(
            q,
            k,
            v,
            self.compress_k(k),
            self.compress_v(v),
            gates,
            window_size=c.window_size,
            compress_block_size=c.compress_block_size,
            compress_stride=c.resolved_stride,
            selection_block_size=c.selection_block_size,
            n_selected_blocks=c.n_selected_blocks,
            max_exact_features=c.max_exact_features,
        )  # (B, H, D, d_head)
        mixed: Tensor = self.out(merge_heads(attended))  # (B, D, d_token)
        return mixed

    @torch.no_grad()
    def selected_blocks(self, tokens: Tensor) -> Tensor:
        """Foreground of every feature: its top blocks per head, best first, (B, H, D, m)."""
        q, k, _, _ = self.project(tokens)
        c = self.config
        return select_blocks(
            q,
            self.compress_k(k),
            n_features=tokens.shape[1],
            compress_block_size=c.compress_block_size,
            compress_stride=c.resolved_stride,
            selection_block_size=c.selection_block_size,
            n_selected_blocks=c.n_selected_blocks,
            max_exact_features=c.max_exact_features,
        )


class FullAttention(nn.Module):
    """Dense attention of every feature to every feature.

    Shape
    -----
    (B, D, d_token) -> (B, D, d_token)
    """

    def __init__(self, config: ArchitectureConfig, generator: Generator | None = None) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        d = config.d_token
        self.qkv = Projection(d, 3 * d, generator)
        self.out = Projection(d, d, generator)

    def forward(self, tokens: Tensor) -> Tensor:
        parts = self.qkv(tokens).chunk(3, dim=-1)
        q, k, v = (split_heads(part, self.n_heads) for part in parts)  # (B, H, D, d_head)
        attended = F.scaled_dot_product_attention(q, k, v)  # (B, H, D, d_head)
        mixed: Tensor = self.out(merge_heads(attended))  # (B, D, d_token)
        return mixed


class MambaScan(nn.Module):
    """Gated selective scan over the features, in both directions with shared weights.

    One direction alone would hide the later features from the earlier ones.

    Shape
    -----
    (B, D, d_token) -> (B, D, d_token)
    """

    D_STATE = 8

    def __init__(self, config: ArchitectureConfig, generator: Generator | None = None) -> None:
        super().__init__()
        d = config.d_token
        self.inner = Projection(d, 2 * d, generator)
        self.directions = Projection(d, 2 * self.D_STATE, generator)
        self.step = Linear(d, d, generator)
        rates = torch.arange(1.0, self.D_STATE + 1).log().repeat(d, 1)
        self.log_rate = nn.Parameter(rates)  # (d_token, d_state)
        self.skip = nn.Parameter(torch.ones(d))
        self.out = Projection(d, d, generator)

    def scan(self, x: Tensor) -> Tensor:
        """One direction of the scan, (B, D, d_token) -> (B, D, d_token)."""
        b, c = self.directions(x).chunk(2, dim=-1)  # each (B, D, d_state)
        return selective_scan(x, F.softplus(self.step(x)), -self.log_rate.exp(), b, c)

    def forward(self, tokens: Tensor) -> Tensor:
        x, gate = self.inner(tokens).chunk(2, dim=-1)  # each (B, D, d_token)
        x = F.silu(x)
        scanned = self.scan(x) + self.scan(x.flip(1)).flip(1) + self.skip * x
        mixed: Tensor = self.out(scanned * F.silu(gate))  # (B, D, d_token)
        return mixed


OPERATORS: dict[str, type[SparseAttention] | type[FullAttention] | type[MambaScan]] = {
    "sparse": SparseAttention,
    "full": FullAttention,
    "mamba": MambaScan,
}
