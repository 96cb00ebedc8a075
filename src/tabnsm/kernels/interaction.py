"""The whole interaction module (ASIM) through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.functional.blocks import n_blocks
from tabnsm.kernels.attention import SMALL_WORK, BlockOptions, Problem, block_options
from tabnsm.kernels.library import library, thread_pool
from tabnsm.kernels.parameters import Parameter, set_gradients, set_weights
from tabnsm.threads import thread_count

# In the order of the enumeration in interaction.c.
PARAMETERS = (
    *("norm", "qkv", "gate_weight", "gate_bias", "out"),
    *("token_weight", "mixed_weight", "skip_weight"),
    *("k_offset", "k_weight1", "k_bias1", "k_weight2", "k_bias2"),
    *("v_offset", "v_weight1", "v_bias1", "v_weight2", "v_bias2"),
    *("norm_scale", "norm_shift", "embedding_weight1", "embedding_bias1"),
    *("embedding_weight2", "embedding_bias2", "feature_weight1", "feature_bias1"),
    *("feature_weight2", "feature_bias2", "fusion_scale", "fusion_shift"),
)
TOKEN_MULTIPLE = 16
"""Token widths are multiples of this: the widest vector of any variant, in floats."""
MAX_NARROW = 128
"""Features up to which rows share vectors; beyond it they go one at a time."""
MAX_NARROW_SELECTED, HEAD_MULTIPLE = 16, 4
"""Selected blocks up to which, and multiple of widths of heads with which, rows can do so."""


def serves(tokens: Tensor) -> bool:
    """Whether the kernel can run on these tokens; otherwise the module is composed in torch."""
    return (
        tokens.device.type == "cpu"
        and tokens.dtype == torch.float32
        and tokens.shape[-1] % TOKEN_MULTIPLE == 0
        and not torch.is_autocast_enabled("cpu")
        and library(tokens.shape[-1]) is not None
    )


def open_library(tokens: Tensor) -> ctypes.CDLL:
    """The variant for these tokens, which the kernel serves."""
    # By the width of tokens, not of heads: products count for more than attention.
    compiled = library(tokens.shape[-1])
    assert compiled is not None
    return compiled


class InteractionShape(NamedTuple):
    """What the kernel must know besides the tokens and the weights.

    Parameters
    ----------
    n_heads, compress_block_size, compress_stride : int
        As in `tabnsm.kernels.sparse_attention`.
    n_pools : int
        Equal parts of every token whose means follow, as `tabnsm.functional.blending.pool_means`
        returns them.
    options : BlockOptions
    """

    n_heads: int
    compress_block_size: int
    compress_stride: int
    n_pools: int
    options: BlockOptions

    @classmethod
    def of(cls, n_features: int, n_heads: int, n_pools: int, **options: int) -> InteractionShape:
        """From the options of `tabnsm.kernels.sparse_attention`."""
        blocks = block_options(n_features, **options)
        size, stride = options["compress_block_size"], options["compress_stride"]
        return cls(n_heads, size, stride, n_pools, blocks)

    def is_narrow(self, tokens: Tensor) -> bool:
        """Whether rows of such tokens share vectors; the number of rows has no part in it."""
        _, n_features, d_token = tokens.shape
        ranks_logits = self.options.group_size == 1 and not self.options.overlap.shape[1]
        return (
            n_features <= MAX_NARROW
            and ranks_logits
            and self.options.n_selected <= MAX_NARROW_SELECTED
            and d_token // self.n_heads % HEAD_MULTIPLE == 0
        )

    def room(self, tokens: Tensor) -> _Saved:
        """Room for what the backward pass takes over; the kernel alone knows its layout."""
        n_rows, n_features, d_token = tokens.shape
        if self.is_narrow(tokens):
            n_rows += -n_rows % open_library(tokens).tabnsm_lanes()
            d_token += 1  # columns are an odd number of vectors apart
        m = self.options.n_selected
        return _Saved(
            tokens.new_empty((n_rows, n_features, d_token)),
            tokens.new_empty((n_rows, self.n_heads, 6, n_features)),
            tokens.new_empty((n_rows, self.n_heads, n_features, m), dtype=torch.int32),
        )


def interaction(
    tokens: Tensor, parameters: Mapping[str, Tensor], shape: InteractionShape
) -> Tensor:
    """Attention, mixing and residual blending of `tabnsm.nn.interaction` in one pass per row.

    A row's result does not depend on the rest of the batch, and the bits do not depend on the
    number of threads.

    Parameters
    ----------
    tokens : Tensor, shape (B, D, d_token)
        float32 on the CPU, d_token a multiple of `TOKEN_MULTIPLE`.
    parameters : mapping of str to Tensor
        By the names of `PARAMETERS`; those of the mixer are missing where there is none.
    shape : InteractionShape

    Returns
    -------
    Tensor, shape (B, D * (1 + n_pools))
    """
    out: Tensor = _Interaction.apply(  # type: ignore[no-untyped-call]
        shape, tuple(parameters), tokens, *parameters.values()
    )
    return out


class _Problem(ctypes.Structure):
    """Mirror of ``Interaction`` in interaction.c."""

    _fields_ = (
        ("attention", Problem),
        *((x, ctypes.c_int64) for x in ("d_token", "n_gates", "compress_block", "compress_stride")),
        *((x, ctypes.c_int64) for x in ("chunk", "n_pools", "narrow")),
        *((x, ctypes.c_void_p) for x in ("tokens", "attended", "out", "d_out", "d_tokens")),
        ("parameter", Parameter * len(PARAMETERS)),
    )


class _Saved(NamedTuple):
    """What the backward pass takes from the forward pass."""

    attended: Tensor  # (B, D, d_token)
    stats: Tensor  # (B, H, 6, D)
    selected: Tensor  # (B, H, D, m)


def _new_problem(
    shape: InteractionShape,
    n_features: int,
    d_token: int,
    weights: Mapping[str, Tensor],
) -> _Problem:
    """What is the same for all batches."""
    options = shape.options
    problem = _Problem()
    problem.attention = Problem(
        *(0, shape.n_heads, n_features, d_token // shape.n_heads),
        *(n_blocks(n_features, shape.compress_stride), *options[:4]),
        n_slots=options.overlap.shape[1],
        overlap=options.overlap.data_ptr(),
        share=options.share.data_ptr(),
    )
    problem.d_token = d_token
    problem.n_gates = weights["gate_weight"].shape[0] // 3
    problem.compress_block = shape.compress_block_size
    problem.compress_stride = shape.compress_stride
    problem.chunk = weights["feature_weight1"].shape[0] if "feature_weight1" in weights else 0
    problem.n_pools = shape.n_pools
    set_weights(problem.parameter, PARAMETERS, weights)
    return problem


def _run(
    problem: _Problem,
    shape: InteractionShape,
    tokens: Tensor,
    saved: _Saved | None,
    out: Tensor | None = None,
    d_out: Tensor | None = None,
    d_tokens: Tensor | None = None,
) -> None:
    """Forward into `out`, or backward from `d_out` into `d_tokens` and the gradients."""
    n_rows, n_features, d_token = tokens.shape
    small = tokens.numel() * d_token < SMALL_WORK
    attention = problem.attention
    attention.n_rows = n_rows
    attention.n_threads = 1 if small else min(thread_count(), n_rows)
    attention.parallel = thread_pool()
    if saved is not None:
        attention.stats, attention.selected = saved.stats.data_ptr(), saved.selected.data_ptr()
        problem.attended = saved.attended.data_ptr()
    problem.narrow = shape.is_narrow(tokens)
    problem.tokens = tokens.data_ptr()
    for name, x in (("out", out), ("d_out", d_out), ("d_tokens", d_tokens)):
        setattr(problem, name, None if x is None else x.data_ptr())
    if open_library(tokens).tabnsm_interaction(ctypes.byref(problem), int(d_out is not None)):
        raise MemoryError(f"no memory to mix {n_features} features of width {d_token}")


class InteractionPass:
    """Passes with one set of weights, without autograd.

    The kernel's arguments are written once: where batches are small, that and autograd take
    longer than the kernel.

    Parameters
    ----------
    shape : InteractionShape
    n_features, d_token : int
    weights : mapping of str to Tensor
        As for `interaction`; they stay where they are.
    gradients : mapping of str to Tensor
        Where `backward` puts the gradients, by the names of the weights.
    """

    def __init__(
        self,
        shape: InteractionShape,
        n_features: int,
        d_token: int,
        weights: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
    ) -> None:
        self.shape = shape
        self._kept = (weights, gradients)  # whose addresses the problem has
        self._problem = _new_problem(shape, n_features, d_token, weights)
        set_gradients(self._problem.parameter, PARAMETERS, gradients)
        self._from: tuple[Tensor, _Saved] | None = None

    def forward(self, tokens: Tensor) -> Tensor:
        """The same as `interaction`."""
        saved = self.shape.room(tokens)
        self._from = tokens, saved
        out = _room_for_out(tokens, self.shape)
        _run(self._problem, self.shape, tokens, saved, out=out)
        return out

    def backward(self, d_out: Tensor) -> Tensor:
        """Gradient of the tokens of the last call of `forward`."""
        assert self._from is not None
        tokens, saved = self._from
        d_tokens = torch.empty_like(tokens)
        _run(self._problem, self.shape, tokens, saved, d_out=d_out, d_tokens=d_tokens)
        self._from = None
        return d_tokens


def _room_for_out(tokens: Tensor, shape: InteractionShape) -> Tensor:
    n_rows, n_features, _ = tokens.shape
    return tokens.new_empty((n_rows, n_features * (1 + shape.n_pools)))


class _Interaction(torch.autograd.Function):
    """Keeps the tokens, the attended tokens, the chosen blocks and six numbers per query."""

    @staticmethod
    def forward(
        ctx: Any, shape: InteractionShape, names: tuple[str, ...], tokens: Tensor, *weights: Tensor
    ) -> Tensor:
        tokens = tokens.contiguous()
        weights = tuple(x.contiguous() for x in weights)
        saved = shape.room(tokens) if any(ctx.needs_input_grad) else None
        out = _room_for_out(tokens, shape)
        _, n_features, d_token = tokens.shape
        named = dict(zip(names, weights, strict=True))
        problem = _new_problem(shape, n_features, d_token, named)
        _run(problem, shape, tokens, saved, out=out)
        if saved is not None:
            ctx.shape, ctx.names, ctx.problem = shape, names, problem
            ctx.save_for_backward(tokens, *saved, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        tokens, attended, stats, selected, *weights = ctx.saved_tensors
        d_tokens = torch.empty_like(tokens)
        gradients = [torch.empty_like(x) for x in weights]
        named = dict(zip(ctx.names, gradients, strict=True))
        set_gradients(ctx.problem.parameter, PARAMETERS, named)
        saved = _Saved(attended, stats, selected)
        d_out = d_out.contiguous()
        _run(ctx.problem, ctx.shape, tokens, saved, d_out=d_out, d_tokens=d_tokens)
        return None, None, d_tokens, *gradients
