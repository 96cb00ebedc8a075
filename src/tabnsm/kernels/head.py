"""The regression head through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.kernels.attention import SMALL_WORK
from tabnsm.kernels.interaction import Parameter
from tabnsm.kernels.library import available, library, thread_pool
from tabnsm.threads import thread_count

# In the order of the enumeration in head.c.
PARAMETERS = (
    *("mlp1_weight1", "mlp1_bias1", "mlp1_weight2", "mlp1_bias2"),
    *("dec1_factor", "dec1_weight", "dec1_bias"),
    *("mlp2_weight1", "mlp2_bias1", "mlp2_weight2", "mlp2_bias2"),
    *("dec2_weight", "dec2_bias"),
    *("mlp3_weight1", "mlp3_bias1", "mlp3_weight2", "mlp3_bias2"),
    *("fusion_weight1", "fusion_bias1", "fusion_weight2", "fusion_bias2"),
)
WIDEST = 16
"""Lanes of the widest variant: rows fill the vectors, so that any width is as good."""
MAX_ROWS = 4096
"""Rows at once without gradients."""


def serves_head(features: Tensor) -> bool:
    """Whether the kernel can run on these features; otherwise the head is composed in torch."""
    return (
        features.device.type == "cpu"
        and features.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        # Vectors of four are no match for the library that torch calls.
        and available() != "baseline"
        and library(WIDEST) is not None
    )


def head(features: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
    """`tabnsm.functional.staging.staged_prediction` of the maps of `tabnsm.nn.head`.

    A row's result does not depend on the rest of the batch, and the bits do not depend on the
    number of threads.

    Parameters
    ----------
    features : Tensor, shape (B, D)
        float32 on the CPU.
    parameters : mapping of str to Tensor
        By the names of `PARAMETERS`, in any order; without ``dec1_factor`` where the first decoder
        is one matrix.

    Returns
    -------
    Tensor, shape (B, t)
    """
    names, weights = tuple(parameters), tuple(parameters.values())
    # All layers of all rows are in memory together, which only the backward pass needs.
    parts = [features] if torch.is_grad_enabled() else list(torch.split(features, MAX_ROWS))
    outs: list[Tensor] = [_Head.apply(names, part, *weights) for part in parts]  # type: ignore[no-untyped-call]
    return outs[0] if len(outs) == 1 else torch.cat(outs)


class _Problem(ctypes.Structure):
    """Mirror of ``Head`` in head.c."""

    _fields_ = (
        *((x, ctypes.c_int64) for x in ("n_rows", "n_inputs", "n_hidden", "n_half", "n_targets")),
        *((x, ctypes.c_int64) for x in ("n_rank", "n_threads")),
        *((x, ctypes.c_void_p) for x in ("x", "out", "d_out", "d_x", "saved", "parallel")),
        ("parameter", Parameter * len(PARAMETERS)),
    )


def _problem(features: Tensor, weights: Mapping[str, Tensor]) -> _Problem:
    n_rows, n_inputs = features.shape
    n_hidden, n_half = weights["mlp1_weight1"].shape[0], weights["dec1_weight"].shape[0]
    small = features.numel() * n_hidden < SMALL_WORK
    problem = _Problem(
        *(n_rows, n_inputs, n_hidden, n_half, weights["dec2_weight"].shape[0]),
        n_rank=weights["dec1_factor"].shape[0] if "dec1_factor" in weights else 0,
        n_threads=1 if small else thread_count(),
        x=features.data_ptr(),
        parallel=thread_pool(),
    )
    for i, name in enumerate(PARAMETERS):
        if name in weights:
            x = weights[name]
            problem.parameter[i] = Parameter(x.data_ptr(), None, *_rows_and_columns(x))
    return problem


def _rows_and_columns(x: Tensor) -> tuple[int, int]:
    return (x.shape[0], x.shape[1]) if x.ndim == 2 else (1, x.numel())


def _run(problem: _Problem, backward: bool) -> None:
    compiled = library(WIDEST)
    assert compiled is not None
    if compiled.tabnsm_head(ctypes.byref(problem), int(backward)):
        raise MemoryError(f"no memory for a head over {problem.n_inputs} numbers per row")


class _Head(torch.autograd.Function):
    """Keeps the layers before their activations, with rows in lanes."""

    @staticmethod
    def forward(ctx: Any, names: tuple[str, ...], features: Tensor, *weights: Tensor) -> Tensor:
        features = features.contiguous()
        weights = tuple(x.contiguous() for x in weights)
        problem = _problem(features, dict(zip(names, weights, strict=True)))
        out = features.new_empty((problem.n_rows, problem.n_targets))
        problem.out = out.data_ptr()
        needs_backward = any(ctx.needs_input_grad)
        if needs_backward:
            compiled = library(WIDEST)
            assert compiled is not None
            compiled.tabnsm_head_saved.restype = ctypes.c_int64
            saved = features.new_empty(compiled.tabnsm_head_saved(ctypes.byref(problem)))
            problem.saved = saved.data_ptr()
        _run(problem, backward=False)
        if needs_backward:
            ctx.names = names
            ctx.save_for_backward(saved, features, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        saved, features, *weights = ctx.saved_tensors
        d_out = d_out.contiguous()
        problem = _problem(features, dict(zip(ctx.names, weights, strict=True)))
        gradients = [torch.empty_like(x) for x in weights]
        d_x = torch.empty_like(features)
        for name, gradient in zip(ctx.names, gradients, strict=True):
            problem.parameter[PARAMETERS.index(name)].gradient = gradient.data_ptr()
        problem.saved, problem.d_out = saved.data_ptr(), d_out.data_ptr()
        problem.d_x = d_x.data_ptr()
        _run(problem, backward=True)
        return None, d_x, *gradients
