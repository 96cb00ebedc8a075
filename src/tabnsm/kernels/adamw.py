"""A step of AdamW through the compiled kernel: clipping, the step and the average in one pass."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tabnsm.kernels.library import library

_ANY_WIDTH = 64


class AdamWSlots(NamedTuple):
    """What a step changes, in one order of the tensors."""

    weight: Sequence[Tensor]
    mean: Sequence[Tensor]
    square: Sequence[Tensor]
    step: Sequence[Tensor]
    average: Sequence[Tensor]
    """Running averages of the weights; empty if there are none."""


class _Descent(ctypes.Structure):
    """Mirror of ``Descent`` in adamw.c."""

    _fields_ = (
        ("n_tensors", ctypes.c_int64),
        *(
            (x, ctypes.c_void_p)
            for x in ("size", "weight", "gradient", "mean", "square", "step", "average", "decay")
        ),
        *(
            (x, ctypes.c_double)
            for x in ("learning_rate", "clip", "beta1", "beta2", "epsilon", "keep")
        ),
    )


def serves_adamw(tensors: Sequence[Tensor]) -> bool:
    """Whether the kernel is there, and all tensors are contiguous float32 of the CPU."""
    return library(_ANY_WIDTH) is not None and all(
        tensor.dtype == torch.float32 and tensor.device.type == "cpu" and tensor.is_contiguous()
        for tensor in tensors
    )


class AdamWKernel:
    """Steps of AdamW on tensors that stay where they are.

    Parameters
    ----------
    slots : AdamWSlots
        Those that `serves_adamw`.
    """

    def __init__(self, slots: AdamWSlots) -> None:
        self.slots = slots
        compiled = library(_ANY_WIDTH)
        assert compiled is not None
        self._run = compiled.tabnsm_adamw
        self._n = len(slots.weight)
        # What there is none of stays NULL.
        self._pointers = {
            name: self._array(tensors) for name, tensors in slots._asdict().items() if tensors
        }
        self._sizes = (ctypes.c_int64 * self._n)(*[tensor.numel() for tensor in slots.weight])

    def step(
        self,
        gradients: Sequence[Tensor],
        decays: Sequence[float],
        *,
        learning_rate: float,
        clip: float,
        betas: tuple[float, float],
        epsilon: float,
        keep: float,
    ) -> None:
        """Clip the norm of the whole gradient, step, and move the average of the weights; in place.

        It is ``clip_grad_norm_``, the step of ``torch.optim.AdamW`` and a ``lerp`` of the average,
        to rounding.

        Parameters
        ----------
        gradients : sequence of Tensor
            Contiguous, each in the shape of its weight; not changed.
        decays : sequence of float
            What a step leaves of the weights of each tensor, 1 - learning_rate * weight_decay.
        learning_rate, clip : float
            `clip` is the largest norm of the gradient.
        betas, epsilon : as of ``torch.optim.AdamW``
        keep : float
            Share of the average that a step keeps.
        """
        gradient, decay = self._array(gradients), (ctypes.c_float * self._n)(*decays)
        descent = _Descent(
            self._n,
            size=ctypes.addressof(self._sizes),
            gradient=ctypes.addressof(gradient),
            decay=ctypes.addressof(decay),
            learning_rate=learning_rate,
            clip=clip,
            beta1=betas[0],
            beta2=betas[1],
            epsilon=epsilon,
            keep=keep,
            **{name: ctypes.addressof(array) for name, array in self._pointers.items()},
        )
        self._run(ctypes.byref(descent))

    def _array(self, tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * self._n)(*[tensor.data_ptr() for tensor in tensors])
