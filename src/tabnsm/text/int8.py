"""A linear map in 8-bit integers, the same bits on every machine and in every batch."""

from __future__ import annotations

import torch
from torch import Tensor

# Inputs take 7 bits and weights 8: CPUs without VNNI add two products in 16 bits, and
# 2 * 127 * 127 still fits there.
_INPUT_LEVELS = 127
_WEIGHT_LEVELS = 127


class Int8Linear:
    """``x @ weight.T + bias`` with both factors rounded to integers.

    Weights have one scale per output; inputs have one scale and offset per row, so that a row's
    result does not depend on the other rows. Sums of integers are exact, so that the oneDNN
    kernel and plain float32 arithmetic, which stands in where that is missing, agree in all bits.

    Examples
    --------
    >>> linear = Int8Linear(torch.tensor([[1.0, -1.0]]), torch.tensor([0.5]))
    >>> linear(torch.tensor([[3.0, 1.0], [0.0, 0.0]]))
    tensor([[2.5000],
            [0.5000]])
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self._scale = (weight.abs().amax(1) / _WEIGHT_LEVELS).clamp_min(1e-30)  # (d_out,)
        levels = torch.round(weight / self._scale[:, None])
        self._bias = bias
        # What an offset of 1 in every input adds to the result.
        self._weight_sum = (levels.double().sum(1) * self._scale).float()
        self._zero = torch.zeros(len(bias), dtype=torch.int32)
        self._packed = _pack(levels)
        self._levels = levels.t().contiguous() if self._packed is None else None

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the map: (N, d_in) to (N, d_out)."""
        low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)  # (N, 1)
        step = ((high - low) / _INPUT_LEVELS).clamp_min_(1e-30)
        # The conversion cuts off, so a half more makes it round.
        levels = (x - low).div_(step).add_(0.5).to(torch.uint8)  # (N, d_in)
        out = torch.addcmul(self._bias, self._multiply(levels), step)  # (N, d_out)
        return out.addcmul_(low, self._weight_sum)

    def _multiply(self, levels: Tensor) -> Tensor:
        if self._levels is not None:
            return (levels.float() @ self._levels).mul_(self._scale)
        multiply = torch.ops.onednn.qlinear_pointwise
        out: Tensor = multiply(
            *(levels, 1.0, 0, self._packed, self._scale, self._zero, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        return out


def _pack(levels: Tensor) -> Tensor | None:
    """Weights in the layout of the kernel; None where it is missing or not exact."""
    weight = levels.to(torch.int8).contiguous()
    zero = torch.zeros(len(weight), dtype=torch.int32)
    probe = torch.full((2, weight.shape[1]), _INPUT_LEVELS, dtype=torch.uint8)
    try:
        packed: Tensor = torch.ops.onednn.qlinear_prepack(weight, None)
        found = torch.ops.onednn.qlinear_pointwise(
            *(probe, 1.0, 0, packed, torch.ones(len(weight)), zero, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
    except (AttributeError, RuntimeError, NotImplementedError):
        return None
    return packed if torch.equal(found, probe.float() @ levels.t()) else None
