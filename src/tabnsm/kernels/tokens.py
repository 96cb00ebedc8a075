"""Bends of the numbers' tokens through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.kernels.attention import SMALL_WORK
from tabnsm.kernels.library import library, thread_pool


def bend_tokens(
    tokens: Tensor, x: Tensor, features: Tensor, low: Tensor, width: Tensor, slopes: Tensor
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
    low, width : Tensor, shape (P, n_pieces)
    slopes : Tensor, shape (P, n_pieces, d_token)

    Returns
    -------
    Tensor, shape (B, D, d_token)
        `tokens`.
    """
    before = slopes.cumsum(1) - slopes  # (P, n_pieces, d_token)
    out: Tensor = _Bends.apply(  # type: ignore[no-untyped-call]
        tokens, x.contiguous(), features, low, width, before, slopes
    )
    return out


class _Problem(ctypes.Structure):
    """Mirror of ``Bends`` in tokens.c."""

    _fields_ = (
        *((x, ctypes.c_int64) for x in ("n_rows", "n_features", "n_bent", "n_pieces", "d_token")),
        ("n_threads", ctypes.c_int64),
        *((x, ctypes.c_void_p) for x in ("x", "feature", "low", "width", "start", "slope")),
        *((x, ctypes.c_void_p) for x in ("tokens", "d_tokens", "d_start", "d_slope", "parallel")),
    )


def _run(tokens: Tensor, *, backward: bool, n_pieces: int, **tensors: Tensor) -> None:
    n_rows, n_features, d_token = tokens.shape
    n_bent = len(tensors["feature"])
    small = n_rows * n_bent * d_token < SMALL_WORK
    problem = _Problem(
        *(n_rows, n_features, n_bent, n_pieces, d_token),
        1 if small else torch.get_num_threads(),
        parallel=thread_pool(),
        **{name: tensor.data_ptr() for name, tensor in tensors.items()},
        **{"d_tokens" if backward else "tokens": tokens.data_ptr()},
    )
    compiled = library(d_token)
    assert compiled is not None
    compiled.tabnsm_bend_tokens(ctypes.byref(problem), int(backward))


class _Bends(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        tokens: Tensor,
        x: Tensor,
        feature: Tensor,
        low: Tensor,
        width: Tensor,
        start: Tensor,
        slope: Tensor,
    ) -> Tensor:
        start, slope = start.contiguous(), slope.contiguous()
        where = {"x": x, "feature": feature, "low": low, "width": width}
        n_pieces = low.shape[1]
        _run(tokens, backward=False, n_pieces=n_pieces, **where, start=start, slope=slope)
        ctx.mark_dirty(tokens)
        ctx.save_for_backward(*where.values())
        return tokens

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_tokens: Tensor) -> tuple[Tensor | None, ...]:
        where = dict(zip(("x", "feature", "low", "width"), ctx.saved_tensors, strict=True))
        n_bent, n_pieces = where["low"].shape
        d_tokens = d_tokens.contiguous()
        d_start, d_slope = d_tokens.new_zeros(2, n_bent, n_pieces, d_tokens.shape[2])
        _run(
            d_tokens,
            backward=True,
            n_pieces=n_pieces,
            **where,
            d_start=d_start,
            d_slope=d_slope,
        )
        return d_tokens, None, None, None, None, d_start, d_slope
