"""The compiled blend against torch's operators: values and slopes."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import huber_loss

from tabnsm.functional.grid_loss import grid_loss
from tabnsm.kernels import available, blend_losses, serves_blend

pytestmark = pytest.mark.skipif(available() == "none", reason="no compiled kernel")

CASES = {
    "default": {"n_grid_cells": 100, "temperature": 0.02, "normalize": True},
    "paper": {"n_grid_cells": 100, "temperature": 1.0, "normalize": False},
    "one cell": {"n_grid_cells": 1, "temperature": 1.0, "normalize": True},
    "steep": {"n_grid_cells": 50, "temperature": 1e-6, "normalize": False},
    "flat": {"n_grid_cells": 1000, "temperature": 1e6, "normalize": False},
}


def both(
    case: str, prediction: Tensor, target: Tensor, lower: float, upper: float, weight: float = 0.5
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Losses and slopes of the kernel, and of torch."""
    options = CASES[case]
    prediction = prediction.clone().requires_grad_()
    width = upper - lower + 1e-8
    scale = width if options["normalize"] else 1.0
    ours = blend_losses(
        prediction,
        target,
        lower=lower,
        width=width,
        n_grid_cells=options["n_grid_cells"],
        temperature=options["temperature"] * scale,
        normalize=options["normalize"],
        huber_weight=weight,
        huber_delta=0.7,
    )
    grid = grid_loss(prediction, target, bounds=(lower, upper), reduction="none", **options)
    huber = huber_loss(prediction, target, reduction="none", delta=0.7)
    theirs = weight * huber + (1 - weight) * grid
    found = []
    for losses in (ours, theirs):
        (slopes,) = torch.autograd.grad(losses.sum(), prediction)
        found.append((losses.detach(), slopes))
    return found[0], found[1]


@pytest.mark.parametrize("weight", [0.0, 0.3])
@pytest.mark.parametrize("case", CASES)
def test_losses_and_slopes(case: str, weight: float) -> None:
    generator = torch.Generator().manual_seed(len(case))
    prediction, target = 2 * torch.randn(2, 300, generator=generator)
    for ours, theirs in zip(*both(case, prediction, target, -3.0, 4.0, weight), strict=True):
        bound = 2e-6 * (1 + theirs.abs().max())
        assert (ours - theirs).abs().max() <= bound


def test_at_anchors_at_the_ends_and_beyond() -> None:
    prediction = torch.tensor([-3.0, -2.93, 0.5, 4.0, -9.0, 9.0, 1.0, math.inf])
    target = torch.tensor([-3.0, -2.93, 0.5, 3.0, 0.0, 0.0, 1.0, 1.0])
    for ours, theirs in zip(*both("default", prediction, target, -3.0, 4.0), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_a_range_of_zero_and_not_a_number() -> None:
    (ours, slopes), _ = both("default", torch.zeros(3), torch.zeros(3), 0.0, 0.0)
    assert not ours.any()
    assert not slopes.any()
    prediction = torch.tensor([math.nan, 1.0])
    (ours, _), _ = both("default", prediction, torch.ones(2), 0.0, 2.0)
    assert ours.isnan().tolist() == [True, False]


def test_what_the_kernel_does_not_serve() -> None:
    values = torch.zeros(4)
    assert serves_blend(values, values)
    assert not serves_blend(values.double(), values)
    assert not serves_blend(values, torch.zeros(4, device="meta"))
    assert not serves_blend(torch.zeros(4, 2), torch.zeros(4, 2))
