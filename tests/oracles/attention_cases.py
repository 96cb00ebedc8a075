"""Random shapes and options of the sparse attention for hypothesis, corners included."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor


@dataclass(frozen=True)
class Case:
    n_rows: int
    n_heads: int
    n_features: int
    d_head: int
    options: dict[str, int]
    seed: int

    def tensors(self, dtype: torch.dtype) -> list[Tensor]:
        """q, k, v, k_cmp, v_cmp and gates that require gradients."""
        generator = torch.Generator().manual_seed(self.seed)
        n_compressed = -(-self.n_features // self.options["compress_stride"])
        lengths = [self.n_features] * 3 + [n_compressed] * 2
        shapes = [(self.n_rows, self.n_heads, n, self.d_head) for n in lengths]
        drawn = [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes]
        gates = torch.rand(
            (self.n_rows, self.n_heads, self.n_features, 3),
            generator=generator,
            dtype=torch.float64,
        )
        return [x.to(dtype).requires_grad_() for x in (*drawn, gates)]


@st.composite
def cases(draw: st.DrawFn, max_features: int = 24, max_d_head: int = 5) -> Case:
    block_size = draw(st.sampled_from([1, 2, 3, 4, 10]))
    stride = draw(st.one_of(st.just(block_size), st.integers(1, block_size)))
    options = {
        "window_size": draw(st.sampled_from([1, 2, 6, 40])),
        "compress_block_size": block_size,
        "compress_stride": stride,
        "selection_block_size": draw(st.one_of(st.just(block_size), st.integers(1, 12))),
        "n_selected_blocks": draw(st.sampled_from([1, 2, 3, 5, 100])),
        # Small ones too: then a few features suffice to let compressed blocks share keys.
        "max_exact_features": draw(st.one_of(st.just(512), st.integers(1, 30))),
    }
    return Case(
        n_rows=draw(st.integers(1, 2)),
        n_heads=draw(st.integers(1, 2)),
        n_features=draw(st.one_of(st.just(1), st.integers(1, max_features))),
        d_head=draw(st.integers(1, max_d_head)),
        options=options,
        seed=draw(st.integers(0, 2**31 - 1)),
    )
