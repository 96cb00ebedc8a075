"""The blend of Huber loss and GridLoss through the compiled kernel, as one torch operator."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tabnsm.kernels.library import library

_ANY_WIDTH = 64


def serves_blend(prediction: Tensor, target: Tensor) -> bool:
    """Whether the kernel can run on these values of one target."""
    return (
        prediction.ndim == 1
        and all(x.device.type == "cpu" and x.dtype == torch.float32 for x in (prediction, target))
        and library(_ANY_WIDTH) is not None
    )


def blend_losses(
    prediction: Tensor,
    target: Tensor,
    *,
    lower: float,
    width: float,
    n_grid_cells: int,
    temperature: float,
    normalize: bool,
    huber_weight: float,
    huber_delta: float,
) -> Tensor:
    """Huber loss and `tabnsm.functional.grid_loss` of each value, weighted, to rounding.

    Parameters
    ----------
    prediction, target : Tensor, shape (n,)
        Those that `serves_blend`.
    lower, width : float
        First anchor of the grid, and the distance to the last one.
    n_grid_cells : int
    temperature : float
        In the units of the values.
    normalize : bool
    huber_weight, huber_delta : float

    Returns
    -------
    Tensor, shape (n,)
    """
    options = {
        "n_cells": n_grid_cells,
        "lower": lower,
        "width": width,
        "temperature": temperature,
        "unit": width / n_grid_cells if normalize else 1.0,
        "huber_weight": huber_weight,
        "huber_delta": huber_delta,
    }
    losses: Tensor = _Blend.apply(prediction, target.contiguous(), options)  # type: ignore[no-untyped-call]
    return losses


class _Problem(ctypes.Structure):
    """Mirror of ``Blend`` in blend.c."""

    _fields_ = (
        *((x, ctypes.c_int64) for x in ("n", "n_cells")),
        *((x, ctypes.c_double) for x in ("lower", "width", "temperature", "unit")),
        *((x, ctypes.c_double) for x in ("huber_weight", "huber_delta")),
        *((x, ctypes.c_void_p) for x in ("prediction", "target", "loss", "slope")),
    )


class _Blend(torch.autograd.Function):
    """Finds the slopes along with the losses."""

    @staticmethod
    def forward(ctx: Any, prediction: Tensor, target: Tensor, options: dict[str, Any]) -> Tensor:
        prediction = prediction.contiguous()
        losses, slopes = torch.empty_like(prediction), torch.empty_like(prediction)
        tensors = {"prediction": prediction, "target": target, "loss": losses, "slope": slopes}
        pointers = {name: x.data_ptr() for name, x in tensors.items()}
        compiled = library(_ANY_WIDTH)
        assert compiled is not None
        compiled.tabnsm_blend(ctypes.byref(_Problem(len(prediction), **options, **pointers)))
        ctx.save_for_backward(slopes)
        return losses

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_losses: Tensor) -> tuple[Tensor, None, None]:
        (slopes,) = ctx.saved_tensors
        d_prediction: Tensor = d_losses * slopes
        return d_prediction, None, None
