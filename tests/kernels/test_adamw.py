from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.kernels import AdamWKernel, AdamWSlots, available, serves_adamw

pytestmark = pytest.mark.skipif(available() == "none", reason="no compiled kernel")


def by_loops(
    w: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, a: np.ndarray, step: int
) -> tuple[np.ndarray, ...]:
    """One number after the other, in float64: rate 0.1, decay 0.99, clipped at 1, average 0.9."""
    norm = np.sqrt(sum(x * x for x in g))
    out = [np.empty_like(w) for _ in range(4)]
    for i in range(len(w)):
        slope = g[i] * min(1.0, 1.0 / (norm + 1e-6))
        mean = 0.9 * m[i] + 0.1 * slope
        square = 0.999 * v[i] + 0.001 * slope**2
        unbiased = mean / (1 - 0.9**step), square / (1 - 0.999**step)
        weight = 0.99 * w[i] - 0.1 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        for values, value in zip(
            out, (weight, mean, square, 0.9 * a[i] + 0.1 * weight), strict=True
        ):
            values[i] = value
    return tuple(out)


@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_a_step_is_that_of_slow_loops(scale: float) -> None:
    rng = np.random.default_rng(0)
    w, m, a = rng.normal(size=(3, 37))
    g, v = scale * rng.normal(size=37), rng.uniform(size=37)
    wanted = by_loops(w, g, m, v, a, step=4)
    found = [torch.tensor(x, dtype=torch.float32) for x in (w, m, v, a)]
    step = torch.tensor(3.0)
    slots = AdamWSlots([found[0]], [found[1]], [found[2]], [step], [found[3]])
    gradient = torch.tensor(g, dtype=torch.float32)
    options = {"learning_rate": 0.1, "clip": 1.0, "betas": (0.9, 0.999), "epsilon": 1e-8}
    AdamWKernel(slots).step([gradient], [0.99], keep=0.9, **options)
    assert step == 4
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


def test_what_the_kernel_does_not_serve() -> None:
    good = torch.zeros(4, 3)
    assert serves_adamw([good])
    assert not serves_adamw([good, good.double()])
    assert not serves_adamw([good.T])
    assert not serves_adamw([torch.zeros(2, device="meta")])
