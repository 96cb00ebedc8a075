"""Piecewise-linear tokens of numbers through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.kernels.attention import SMALL_WORK
from tabnsm.kernels.library import library, thread_pool
from tabnsm.threads import thread_count


def add_piecewise_tokens(
    tokens: Tensor,
    x: Tensor,
    features: Tensor,
    begin: Tensor,
    low: Tensor,
    width: Tensor,
    slopes: Tensor,
) -> Tensor:
    """Add `tabnsm.functional.tokens.piecewise_tokens` to the tokens of some features, in place.

    The bits do not depend on the number of threads, nor a row's on the rest of the batch.

    Parameters
    ----------
    tokens : Tensor, shape (B, D, d_token)
        float32 on the CPU; changed.
    x : Tensor, shape (B, P)
        Without gradient.
    features : Tensor of int64, shape (P,)
        Which of the D features they are.
    begin : Tensor of int64, shape (P + 1,)
        Where the bins of each of them begin in `slopes`, and how many there are in all.
    low, width : Tensor, shape (P, n_bins)
        Ends and widths, those of features with fewer bins filled up at the end.
    slopes : Tensor, shape (n_bins_of_all_features, d_token)

    Returns
    -------
    Tensor, shape (B, D, d_token)
        `tokens`.
    """
    out: Tensor = _PiecewiseTokens.apply(  # type: ignore[no-untyped-call]
        tokens, x.contiguous(), features, begin, low, width, slopes
    )
    return out


class _Problem(ctypes.Structure):
    """Mirror of ``Piecewise`` in tokens.c."""

    _fields_ = (
        *((x, ctypes.c_int64) for x in ("n_rows", "n_features", "n_binned", "n_bins", "d_token")),
        ("n_threads", ctypes.c_int64),
        *(
            (x, ctypes.c_void_p)
            for x in ("x", "feature", "low", "width", "begin", "slope", "start")
        ),
        *((x, ctypes.c_void_p) for x in ("tokens", "d_tokens", "d_start", "d_slope", "parallel")),
    )


def _run(tokens: Tensor, *, backward: bool, n_bins: int, **tensors: Tensor) -> None:
    n_rows, n_features, d_token = tokens.shape
    n_binned = len(tensors["feature"])
    small = n_rows * n_binned * d_token < SMALL_WORK
    problem = _Problem(
        *(n_rows, n_features, n_binned, n_bins, d_token),
        1 if small else thread_count(),
        parallel=thread_pool(),
        **{name: tensor.data_ptr() for name, tensor in tensors.items()},
        **{"d_tokens" if backward else "tokens": tokens.data_ptr()},
    )
    compiled = library(d_token)
    assert compiled is not None
    compiled.tabnsm_piecewise_tokens(ctypes.byref(problem), int(backward))


class _PiecewiseTokens(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tokens: Tensor,
        x: Tensor,
        feature: Tensor,
        begin: Tensor,
        low: Tensor,
        width: Tensor,
        slope: Tensor,
    ) -> Tensor:
        where = {"x": x, "feature": feature, "begin": begin, "low": low, "width": width}
        slope = slope.contiguous()
        start = torch.empty_like(slope)
        _run(tokens, backward=False, n_bins=low.shape[1], **where, start=start, slope=slope)
        ctx.mark_dirty(tokens)
        ctx.save_for_backward(*where.values())
        return tokens

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_tokens: Tensor) -> tuple[Tensor | None, ...]:
        names = ("x", "feature", "begin", "low", "width")
        where = dict(zip(names, ctx.saved_tensors, strict=True))
        d_tokens = d_tokens.contiguous()
        d_start, d_slope = d_tokens.new_zeros(2, int(where["begin"][-1]), d_tokens.shape[2])
        _run(
            d_tokens,
            backward=True,
            n_bins=where["low"].shape[1],
            **where,
            d_start=d_start,
            d_slope=d_slope,
        )
        return d_tokens, None, None, None, None, None, d_slope
