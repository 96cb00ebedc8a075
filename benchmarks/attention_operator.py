"""The sparse attention operator, forward and backward, against dense attention on the same q, k, v.

Run on an idle machine: ``OMP_NUM_THREADS=2 python benchmarks/attention_operator.py``. Both sides
run in one process with the same allocator, threads and precision; times are the fastest of several
rounds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tabnsm import kernels

BATCH = 64
OPTIONS = {
    "window_size": 6,
    "compress_block_size": 10,
    "compress_stride": 10,
    "selection_block_size": 10,
    "n_selected_blocks": 3,
}


def step(operator: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], None]:
    """One forward and backward pass."""
    weights = torch.randn(inputs[0].shape)

    def run() -> None:
        torch.autograd.grad(operator(*inputs), inputs, weights)

    return run


def fastest(runs: list[Callable[[], object]], seconds: float) -> list[float]:
    """Fastest round of each in milliseconds, in turns so that all meet the same machine."""
    for run in runs:
        run()
    best, start = [float("inf")] * len(runs), time.perf_counter()
    while time.perf_counter() - start < seconds * len(runs):
        for i, run in enumerate(runs):
            begin = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - begin)
    return [x * 1e3 for x in best]


def compare(n_features: int, d_head: int, n_heads: int, seconds: float) -> None:
    torch.manual_seed(0)
    # Four rows suffice at large D, where both sides take seconds and scale with the rows.
    n_rows = BATCH if n_features <= 1024 else 4
    q, k, v = (torch.randn(n_rows, n_heads, n_features, d_head) for _ in range(3))
    n_compressed = -(-n_features // OPTIONS["compress_stride"])
    k_cmp, v_cmp = (torch.randn(n_rows, n_heads, n_compressed, d_head) for _ in range(2))
    gates = torch.rand(n_rows, n_heads, n_features, 3)
    inputs = [x.requires_grad_() for x in (q, k, v, k_cmp, v_cmp, gates)]

    def sparse(*x: Tensor) -> Tensor:
        return kernels.sparse_attention(*x, **OPTIONS)

    with torch.no_grad():
        sparse_forward, dense_forward = fastest(
            [lambda: sparse(*inputs), lambda: scaled_dot_product_attention(q, k, v)], seconds
        )
    sparse_both, dense_both = fastest(
        [step(sparse, inputs), step(scaled_dot_product_attention, inputs[:3])], seconds
    )
    print(
        f"{n_features:6d} {n_heads} x {d_head:<3d} {n_rows:5d} "
        f"{sparse_forward:9.1f} {dense_forward:9.1f} {dense_forward / sparse_forward:6.1f}x "
        f"{sparse_both:9.1f} {dense_both:9.1f} {dense_both / sparse_both:6.1f}x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measurement")
    seconds = parser.parse_args().seconds
    allocator = {name: x for name, x in os.environ.items() if name.startswith(("MALLOC_", "LD_PR"))}
    print(
        f"kernel {kernels.available()}, {torch.get_num_threads()} threads, float32, "
        f"torch {torch.__version__}, allocator settings {allocator or 'default'}"
    )
    print("                      forward, ms                  forward + backward, ms")
    print("     D heads    rows    sparse     dense   ratio    sparse     dense   ratio")
    for d_head in (16, 8):
        for n_features in (400, 1024, 4096):
            compare(n_features, d_head, 4, seconds)


if __name__ == "__main__":
    main()
