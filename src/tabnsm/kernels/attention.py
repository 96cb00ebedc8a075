"""Sparse attention through the compiled kernel, as a differentiable torch operator."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.functional import sparse_attention as functional
from tabnsm.functional.blocks import (
    MAX_EXACT_FEATURES,
    block_overlap,
    blocks_per_key,
    check_block_options,
    n_blocks,
)
from tabnsm.kernels.library import library, thread_pool
from tabnsm.threads import thread_count

SMALL_WORK = 2**16
"""Logits below which starting threads costs more than they save."""


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
    """Same as `tabnsm.functional.sparse_attention.sparse_attention`, compiled where possible.

    The kernel serves float32 on the CPU; other types and devices, and installs without it, take
    the torch path. Inputs may be views of one projection: any strides are read in place as long as
    the last axis is dense. The result is a view of a dense (B, D, H, d_head) tensor, ready for a
    linear map over ``H * d_head``. It is the same to the bit for any number of threads, and a row's
    result does not depend on the rest of the batch.

    Examples
    --------
    >>> q = torch.ones(1, 1, 4, 2)
    >>> k_cmp = v_cmp = torch.ones(1, 1, 2, 2)
    >>> gates = torch.full((1, 1, 4, 3), 0.5)
    >>> sparse_attention(q, q, q, k_cmp, v_cmp, gates, window_size=1, compress_block_size=2,
    ...                  compress_stride=2, selection_block_size=2, n_selected_blocks=1)[0, 0, 0]
    tensor([1.5000, 1.5000])
    """
    tensors = (q, k, v, k_cmp, v_cmp, gates)
    on_cpu = all(x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
    compiled = library(q.shape[-1]) if on_cpu else None
    if compiled is None:
        return functional.sparse_attention(
            *tensors,
            window_size=window_size,
            compress_block_size=compress_block_size,
            compress_stride=compress_stride,
            selection_block_size=selection_block_size,
            n_selected_blocks=n_selected_blocks,
            max_exact_features=max_exact_features,
        )
    functional.check_shapes(*tensors, compress_stride=compress_stride)
    options = block_options(
        q.shape[-2],
        window_size=window_size,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        max_exact_features=max_exact_features,
    )
    out: Tensor = _SparseAttention.apply(compiled, options, *tensors)  # type: ignore[no-untyped-call]
    return out


class BlockOptions(NamedTuple):
    """Options of the attention for one number of features, as the kernel wants them."""

    group_size: int
    window_size: int
    block_size: int
    n_selected: int
    overlap: Tensor  # (S, n_slots), no slots where the logits are ranked
    share: Tensor  # (S, n_slots)


@functools.lru_cache(maxsize=64)
def block_options(
    n_features: int,
    *,
    window_size: int,
    compress_block_size: int,
    compress_stride: int,
    selection_block_size: int,
    n_selected_blocks: int,
    max_exact_features: int,
) -> BlockOptions:
    """Check the options of `sparse_attention` and bring them into the kernel's form."""
    check_block_options(
        window_size=window_size,
        compress_block_size=compress_block_size,
        compress_stride=compress_stride,
        selection_block_size=selection_block_size,
        n_selected_blocks=n_selected_blocks,
        max_exact_features=max_exact_features,
    )
    index, share = torch.empty((0, 0)), torch.empty((0, 0))
    if not selection_block_size == compress_block_size == compress_stride:
        index, share = block_overlap(
            n_features, compress_block_size, compress_stride, selection_block_size
        )
    return BlockOptions(
        blocks_per_key(
            n_features,
            compress_block_size=compress_block_size,
            compress_stride=compress_stride,
            selection_block_size=selection_block_size,
            max_exact_features=max_exact_features,
        ),
        min(window_size, n_features),
        selection_block_size,
        min(n_selected_blocks, n_blocks(n_features, selection_block_size)),
        index.to("cpu", torch.int32),
        share.to("cpu", torch.float32),
    )


class _Strided(ctypes.Structure):
    """A tensor as the kernel sees it: address and strides in elements."""

    _fields_ = (("data", ctypes.c_void_p), ("stride", ctypes.c_int64 * 4))

    @classmethod
    def of(cls, x: Tensor) -> _Strided:
        return cls(x.data_ptr(), (ctypes.c_int64 * 4)(*x.stride()))


SIZES = (
    *("n_rows", "n_heads", "n_features", "d_head", "n_compressed", "group_size"),
    *("window_size", "block_size", "n_selected", "n_slots", "n_threads"),
)
INPUTS = ("q", "k", "v", "k_cmp", "v_cmp", "gates")
GRADIENTS = ("dq", "dk", "dv", "dk_cmp", "dv_cmp", "d_gates")


class Problem(ctypes.Structure):
    """Mirror of ``Problem`` in sparse_attention.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in SIZES),
        *((name, _Strided) for name in (*INPUTS, "out", "d_out", *GRADIENTS)),
        ("stats", ctypes.c_void_p),
        ("selected", ctypes.c_void_p),
        ("overlap", ctypes.c_void_p),
        ("share", ctypes.c_void_p),
        ("parallel", ctypes.c_void_p),
    )


def _run(
    compiled: ctypes.CDLL,
    options: BlockOptions,
    stats: Tensor,
    selected: Tensor,
    backward: bool,
    tensors: dict[str, Tensor],
) -> None:
    q, n_compressed = tensors["q"], tensors["k_cmp"].shape[2]
    n_rows, n_heads, n_features, d_head = q.shape
    group_size, window_size, block_size, n_selected, overlap, share = options
    keys = n_blocks(n_compressed, group_size) + 2 * window_size + n_selected * block_size
    small = n_rows * n_heads * n_features * keys < SMALL_WORK
    n_threads = 1 if small else min(thread_count(), n_rows * n_heads)
    n_slots = overlap.shape[1]
    problem = Problem(*q.shape, n_compressed, *options[:4], n_slots, n_threads)
    for name, x in tensors.items():
        setattr(problem, name, _Strided.of(x))
    problem.stats, problem.selected = stats.data_ptr(), selected.data_ptr()
    problem.overlap, problem.share = overlap.data_ptr(), share.data_ptr()
    problem.parallel = thread_pool()
    if compiled.tabnsm_sparse_attention(ctypes.byref(problem), int(backward)):
        raise MemoryError(f"no memory to attend over {n_features} features of width {d_head}")


def _dense_last(x: Tensor) -> Tensor:
    return x if x.stride(-1) == 1 else x.contiguous()


def _gradient_of(x: Tensor) -> Tensor:
    """Room in the layout of an input, so that the gradients of views need no copy either."""
    # Inputs that overlap themselves have no such layout, and torch's own may turn the axes.
    like = torch.empty_like(x)
    dense = like.stride(-1) == 1 or x.shape[-1] == 1
    return like if dense else torch.empty_like(x, memory_format=torch.contiguous_format)


class _SparseAttention(torch.autograd.Function):
    """Keeps the inputs, the chosen blocks and two numbers per query and branch."""

    @staticmethod
    def forward(
        ctx: Any,
        compiled: ctypes.CDLL,
        options: BlockOptions,
        *inputs: Tensor,
    ) -> Tensor:
        *features, gates = inputs
        tensors = dict(zip(INPUTS, (*map(_dense_last, features), gates), strict=True))
        q = tensors["q"]
        n_rows, n_heads, n_features, d_head = q.shape
        stats = q.new_empty((n_rows, n_heads, 6, n_features))
        selected = q.new_empty((n_rows, n_heads, n_features, options.n_selected), dtype=torch.int32)
        dense = q.new_empty((n_rows, n_features, n_heads, d_head))
        out = dense.transpose(1, 2)  # (B, H, D, d_head)
        _run(compiled, options, stats, selected, False, {**tensors, "out": out})
        ctx.compiled, ctx.options = compiled, options
        ctx.save_for_backward(stats, selected, *tensors.values())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        stats, selected, *inputs = ctx.saved_tensors
        tensors = dict(zip(INPUTS, inputs, strict=True))
        gradients = {name: _gradient_of(x) for name, x in zip(GRADIENTS, inputs, strict=True)}
        tensors = {**tensors, "d_out": _dense_last(d_out), **gradients}
        _run(ctx.compiled, ctx.options, stats, selected, True, tensors)
        return (None, None, *gradients.values())
