"""The weights of a kernel's problem: where they are, and where their gradients go."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from torch import Tensor


class Parameter(ctypes.Structure):
    """A weight as the kernels see it: addresses of values and gradient, and its shape."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("gradient", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
    )


def set_weights(
    slots: ctypes.Array[Parameter], names: Sequence[str], weights: Mapping[str, Tensor]
) -> None:
    """Point the slots, one for each name, at the weights that are there."""
    for slot, name in zip(slots, names, strict=True):
        if name in weights:
            x = weights[name]
            slot.data = x.data_ptr()
            slot.rows, slot.columns = x.shape if x.ndim == 2 else (1, x.numel())


def set_gradients(
    slots: ctypes.Array[Parameter], names: Sequence[str], gradients: Mapping[str, Tensor]
) -> None:
    """Point the slots at where the gradients go, by the names of the weights."""
    for slot, name in zip(slots, names, strict=True):
        if name in gradients:
            slot.gradient = gradients[name].data_ptr()
