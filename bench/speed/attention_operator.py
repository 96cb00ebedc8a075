"""The sparse attention operator against dense attention and against native-sparse-attention.

    python bench/speed/attention_operator.py

Dense: `F.scaled_dot_product_attention` on the same q, k, v. Public sparse attention:
native-sparse-attention-pytorch 0.2.3, two-sided, both sides as a layer on tokens with RMSNorm,
projections to q, k, v and back, compression networks of one width, and gates per head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from measure import Run, figure, in_turns, peak_memory, show
from sides import MissingPeerError, peer
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tabnsm import kernels
from tabnsm.nn.attention import FullAttention, SparseAttention
from tabnsm.nn.config import ArchitectureConfig

BATCH, N_HEADS = 64, 4
WINDOW, BLOCK, N_SELECTED = 6, 10, 3
DENSE_GOALS = {(400, 16): 2.0, (1024, 16): 3.0, (4096, 16): 8.0}
# The default model's heads are 8 wide.
SHAPES = (*DENSE_GOALS, (400, 8), (1024, 8))
NSA_FEATURES, NSA_TIME_GOAL, NSA_MEMORY_GOAL = 400, 40.0, 20.0
NSA = "native-sparse-attention-pytorch"


def run(
    *,
    shapes: tuple[tuple[int, int], ...] = SHAPES,
    batch: int = BATCH,
    seconds: float = 3.0,
) -> dict[str, Any]:
    """The operator and dense attention on the same q, k, v; forward alone and with backward."""
    rows, figures = [], []
    for n_features, d_head in shapes:
        row = compare_with_dense(n_features, d_head, batch, seconds)
        rows.append(row)
        figures.append(
            figure(
                "operator, forward + backward, against dense SDPA, "
                f"D = {n_features:,}, {N_HEADS} heads of {d_head}",
                row["dense_step_ms"] / row["sparse_step_ms"],
                at_least=DENSE_GOALS.get((n_features, d_head)),
            )
        )
    return {"settings": {"batch": batch}, "rows": rows, "figures": figures, "missing": []}


def compare_with_dense(n_features: int, d_head: int, batch: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of both sides."""
    inputs = operator_inputs(n_features, d_head, batch)
    q, k, v = inputs[:3]
    weights = torch.randn(q.shape)
    few = [x[:1].detach().requires_grad_() for x in inputs]
    step_of(sparse, few, weights[:1])()
    step_of(scaled_dot_product_attention, few[:3], weights[:1])()
    with torch.no_grad():
        forward = in_turns(
            {
                "sparse": lambda: sparse(*inputs),
                "dense": lambda: scaled_dot_product_attention(q, k, v),
            },
            seconds=seconds,
            rounds=2,
        )
    step = in_turns(
        {
            "sparse": step_of(sparse, inputs, weights),
            "dense": step_of(scaled_dot_product_attention, inputs[:3], weights),
        },
        seconds=seconds,
        rounds=2,
    )
    return {
        "n_features": n_features,
        "heads": f"{N_HEADS} x {d_head}",
        "sparse_forward_ms": 1e3 * forward["sparse"],
        "dense_forward_ms": 1e3 * forward["dense"],
        "sparse_step_ms": 1e3 * step["sparse"],
        "dense_step_ms": 1e3 * step["dense"],
    }


def operator_inputs(n_features: int, d_head: int, batch: int) -> list[Tensor]:
    """Queries, keys, values, compressed keys and values, gates."""
    torch.manual_seed(0)
    qkv = [torch.randn(batch, N_HEADS, n_features, d_head) for _ in range(3)]
    n_compressed = -(-n_features // BLOCK)
    compressed = [torch.randn(batch, N_HEADS, n_compressed, d_head) for _ in range(2)]
    gates = torch.rand(batch, N_HEADS, n_features, 3)
    return [x.requires_grad_() for x in (*qkv, *compressed, gates)]


def sparse(*inputs: Tensor) -> Tensor:
    """The library's operator with the benchmark's sizes."""
    return kernels.sparse_attention(
        *inputs,
        window_size=WINDOW,
        compress_block_size=BLOCK,
        compress_stride=BLOCK,
        selection_block_size=BLOCK,
        n_selected_blocks=N_SELECTED,
    )


def step_of(operator: Callable[..., Tensor], inputs: list[Tensor], weights: Tensor) -> Run:
    """One forward and backward pass."""
    return lambda: torch.autograd.grad(operator(*inputs), inputs, weights)


def run_layers(
    *, n_features: int = NSA_FEATURES, d_head: int = 16, batch: int = BATCH, seconds: float = 10.0
) -> dict[str, Any]:
    """The whole layer with projections: ours, dense, and the public sparse one; time and memory."""
    sides = {"sparse": layer_step, "dense": dense_step, NSA: nsa_step}
    runs: dict[str, Run] = {}
    missing = []
    for name, build in sides.items():
        try:
            build(2 * BLOCK, d_head, 2)()
            runs[name] = build(n_features, d_head, batch)
        except MissingPeerError as error:
            missing.append(str(error))
    for run in runs.values():
        run()
    times = in_turns(runs, seconds=seconds)
    peaks = {
        name: peak_memory(sides[name], (2 * BLOCK, d_head, 2), (n_features, d_head, batch))
        for name in runs
    }
    rows = [{"layer": name, "step_ms": 1e3 * times[name], "peak_mb": peaks[name]} for name in runs]
    figures = []
    at_goal = n_features == NSA_FEATURES
    for name in (name for name in runs if name != "sparse"):
        goals = (NSA_TIME_GOAL, NSA_MEMORY_GOAL) if name == NSA and at_goal else (None, None)
        other = "dense attention" if name == "dense" else name
        figures += [
            figure(
                f"layer, forward + backward, against {other}, D = {n_features}",
                times[name] / times["sparse"],
                at_least=goals[0],
            ),
            figure(
                f"layer, less peak memory than {other}, D = {n_features}",
                peaks[name] / peaks["sparse"],
                at_least=goals[1],
            ),
        ]
    settings = {"n_features": n_features, "d_head": d_head, "batch": batch}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": missing}


def config_of(d_head: int) -> ArchitectureConfig:
    return ArchitectureConfig(
        d_token=N_HEADS * d_head,
        n_heads=N_HEADS,
        window_size=WINDOW,
        compress_block_size=BLOCK,
        selection_block_size=BLOCK,
        n_selected_blocks=N_SELECTED,
    )


def layer_step(n_features: int, d_head: int, batch: int) -> Run:
    """This library's sparse attention."""
    d_token = N_HEADS * d_head
    layer = nn.Sequential(nn.RMSNorm(d_token), SparseAttention(config_of(d_head)))
    return module_step(layer, n_features, d_token, batch)


def dense_step(n_features: int, d_head: int, batch: int) -> Run:
    """Dense attention with the same projections."""
    d_token = N_HEADS * d_head
    layer = nn.Sequential(nn.RMSNorm(d_token), FullAttention(config_of(d_head)))
    return module_step(layer, n_features, d_token, batch)


def nsa_step(n_features: int, d_head: int, batch: int) -> Run:
    """The public sparse attention; its RMSNorm is inside."""
    d_token = N_HEADS * d_head
    layer = peer("native_sparse_attention_pytorch", NSA).SparseAttention(
        dim=d_token,
        dim_head=d_head,
        heads=N_HEADS,
        sliding_window_size=WINDOW,
        compress_block_size=BLOCK,
        compress_block_sliding_stride=BLOCK,
        selection_block_size=BLOCK,
        num_selected_blocks=N_SELECTED,
        causal=False,
        # Its own network is five times as wide as ours, which is no matter of attention.
        compress_mlp=nn.Sequential(
            nn.Flatten(-2),
            nn.Linear(BLOCK * d_head, 2 * d_head),
            nn.GELU(),
            nn.Linear(2 * d_head, d_head),
        ),
    )
    return module_step(layer, n_features, d_token, batch)


def module_step(layer: nn.Module, n_features: int, d_token: int, batch: int) -> Run:
    """Forward and backward, to the tokens and to all weights."""
    torch.manual_seed(0)
    tokens = torch.randn(batch, n_features, d_token, requires_grad=True)
    weights = torch.randn(tokens.shape)
    inputs = [tokens, *(p for p in layer.parameters() if p.requires_grad)]
    return lambda: torch.autograd.grad(layer(tokens), inputs, weights, allow_unused=True)


if __name__ == "__main__":
    show(run())
    show(run_layers())
