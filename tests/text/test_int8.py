from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.text import int8 as linear_int8
from tabnsm.text.int8 import Int8Linear


def make(d_in: int, d_out: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(d_out, d_in, generator=generator),
        torch.randn(d_out, generator=generator),
    )


def oracle(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Both factors rounded to their grids, one number at a time, in float64."""
    x, weight = x.double(), weight.double()
    rows = []
    for row in x:
        step = (row.max() - row.min()) / 127
        rows.append(row.min() + torch.floor((row - row.min()) / step + 0.5) * step)
    outputs = []
    for column in weight:
        step = column.abs().max() / 127
        outputs.append(torch.round(column / step) * step)
    return torch.stack(rows) @ torch.stack(outputs).T + bias.double()


@given(st.integers(2, 70), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**20))
def test_equals_the_product_of_rounded_factors(d_in, d_out, n_rows, seed):
    weight, bias = make(d_in, d_out, seed)
    x = torch.randn(n_rows, d_in, generator=torch.Generator().manual_seed(seed))
    found = Int8Linear(weight, bias)(x).double()
    # A value on the border of two levels may go either way.
    tolerance = 2 * (x.amax() - x.amin()) * weight.abs().amax() / 127
    assert (found - oracle(x, weight, bias)).abs().max() <= tolerance
    exact = x.double() @ weight.double().T + bias
    assert (found - exact).norm() <= 0.05 * (exact.norm() + 1)


@pytest.mark.parametrize("d_in", [8, 384, 1536])
def test_float_arithmetic_stands_in_with_the_same_bits(monkeypatch, d_in):
    weight, bias = make(d_in, 96)
    x = 3 * torch.randn(50, d_in, generator=torch.Generator().manual_seed(1)) + 1
    # The largest sums that can occur.
    x[0], weight[0] = 0.0, 1.0
    x[0, 1:] = 5.0
    expected = Int8Linear(weight, bias)(x)
    monkeypatch.setattr(linear_int8, "_pack", lambda levels: None)
    assert torch.equal(Int8Linear(weight, bias)(x), expected)


def test_a_kernel_that_is_missing_or_wrong_is_not_used(monkeypatch):
    weight, _ = make(16, 4)
    levels = torch.randint(-127, 128, weight.shape).float()
    if linear_int8._pack(levels) is None:
        pytest.skip("this torch has no int8 kernel")

    class Wrong:
        qlinear_prepack = staticmethod(lambda weight, shape: weight)
        qlinear_pointwise = staticmethod(lambda x, *rest: torch.zeros(len(x), len(levels)))

    monkeypatch.setattr(torch.ops, "onednn", Wrong)
    assert linear_int8._pack(levels) is None
    monkeypatch.setattr(torch.ops, "onednn", object())
    assert linear_int8._pack(levels) is None


def test_a_row_does_not_depend_on_the_others():
    weight, bias = make(384, 100)
    linear = Int8Linear(weight, bias)
    x = torch.randn(40, 384, generator=torch.Generator().manual_seed(2))
    x[7] *= 1000
    together = linear(x)
    for place in (0, 6, 7, 39):
        assert torch.equal(linear(x[place : place + 1])[0], together[place])


@pytest.mark.parametrize("value", [0.0, 3.0, -1e8])
def test_constant_rows_are_exact_to_the_weights_rounding(value):
    weight, bias = make(20, 5)
    found = Int8Linear(weight, bias)(torch.full((2, 20), value))
    expected = value * weight.sum(1) + bias
    bound = abs(value) * 20 * weight.abs().amax(1) / 127 + 1e-4
    assert ((found - expected).abs() <= bound).all()
