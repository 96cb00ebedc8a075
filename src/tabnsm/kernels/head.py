"""The regression head through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.kernels.attention import SMALL_WORK
from tabnsm.kernels.library import available, library, thread_pool
from tabnsm.kernels.parameters import Parameter, set_gradients, set_weights
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


def _new_problem(weights: Mapping[str, Tensor]) -> _Problem:
    """What is the same for all batches."""
    n_hidden, n_inputs = weights["mlp1_weight1"].shape
    problem = _Problem(
        *(0, n_inputs, n_hidden, weights["dec1_weight"].shape[0]),
        n_targets=weights["dec2_weight"].shape[0],
        n_rank=weights["dec1_factor"].shape[0] if "dec1_factor" in weights else 0,
    )
    set_weights(problem.parameter, PARAMETERS, weights)
    return problem


def _open() -> ctypes.CDLL:
    compiled = library(WIDEST)
    assert compiled is not None
    return compiled


def _run_forward(problem: _Problem, features: Tensor, keeps: bool) -> tuple[Tensor, Tensor | None]:
    """Predictions, and what the backward pass takes over."""
    _set_rows(problem, features)
    out, saved = features.new_empty((problem.n_rows, problem.n_targets)), None
    if keeps:
        compiled = _open()
        compiled.tabnsm_head_saved.restype = ctypes.c_int64
        saved = features.new_empty(compiled.tabnsm_head_saved(ctypes.byref(problem)))
    problem.out, problem.saved = out.data_ptr(), None if saved is None else saved.data_ptr()
    _run(problem, backward=False)
    return out, saved


def _run_backward(problem: _Problem, features: Tensor, saved: Tensor, d_out: Tensor) -> Tensor:
    """Gradient of the features; those of the weights go where the problem says."""
    _set_rows(problem, features)
    d_x = torch.empty_like(features)
    problem.saved, problem.d_out = saved.data_ptr(), d_out.data_ptr()
    problem.d_x = d_x.data_ptr()
    _run(problem, backward=True)
    return d_x


def _set_rows(problem: _Problem, features: Tensor) -> None:
    small = features.numel() * problem.n_hidden < SMALL_WORK
    problem.n_rows, problem.x = len(features), features.data_ptr()
    problem.n_threads = 1 if small else thread_count()
    problem.parallel = thread_pool()


def _run(problem: _Problem, backward: bool) -> None:
    if _open().tabnsm_head(ctypes.byref(problem), int(backward)):
        raise MemoryError(f"no memory for a head over {problem.n_inputs} numbers per row")


class HeadPass:
    """Passes with one set of weights, without autograd; see `InteractionPass`.

    Parameters
    ----------
    weights : mapping of str to Tensor
        As for `head`; they stay where they are.
    gradients : mapping of str to Tensor
        Where `backward` puts the gradients, by the names of the weights.
    """

    def __init__(self, weights: Mapping[str, Tensor], gradients: Mapping[str, Tensor]) -> None:
        self._kept = (weights, gradients)  # whose addresses the problem has
        self._problem = _new_problem(weights)
        set_gradients(self._problem.parameter, PARAMETERS, gradients)
        self._from: tuple[Tensor, Tensor] | None = None

    def forward(self, features: Tensor) -> Tensor:
        """The same as `head`."""
        out, saved = _run_forward(self._problem, features, keeps=True)
        assert saved is not None
        self._from = features, saved
        return out

    def backward(self, d_out: Tensor) -> Tensor:
        """Gradient of the features of the last call of `forward`."""
        assert self._from is not None
        d_features = _run_backward(self._problem, *self._from, d_out)
        self._from = None
        return d_features


class _Head(torch.autograd.Function):
    """Keeps the layers before their activations, with rows in lanes."""

    @staticmethod
    def forward(ctx: Any, names: tuple[str, ...], features: Tensor, *weights: Tensor) -> Tensor:
        features = features.contiguous()
        weights = tuple(x.contiguous() for x in weights)
        problem = _new_problem(dict(zip(names, weights, strict=True)))
        out, saved = _run_forward(problem, features, keeps=any(ctx.needs_input_grad))
        if saved is not None:
            ctx.names, ctx.problem = names, problem
            ctx.save_for_backward(saved, features, *weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        saved, features, *weights = ctx.saved_tensors
        gradients = [torch.empty_like(x) for x in weights]
        named = dict(zip(ctx.names, gradients, strict=True))
        set_gradients(ctx.problem.parameter, PARAMETERS, named)
        d_x = _run_backward(ctx.problem, features, saved, d_out.contiguous())
        return None, d_x, *gradients
