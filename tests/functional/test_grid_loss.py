"""GridLoss against the textbook softmax, the paper's lemmas, and its corners."""

from __future__ import annotations

import math
import types
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import tabnsm.functional.grid_loss as module
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.functional.grid_loss import grid_bounds, grid_loss, soft_index
from tests.oracles import grid_loss as oracle

N_CELLS = (1, 2, 7, 100, 10_000)
# Relative to the range: six orders, and the two extremes beyond them.
TEMPERATURES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
LOWER, UPPER = -3.0, 5.0
# Away from anchors and midpoints, where the slope jumps or is steepest.
FRACTIONS = (0.1, 0.3, 0.45, 0.55, 0.8, 0.95)


def points_inside_cells(n_grid_cells: int, *, n_cells: int) -> list[float]:
    step = (UPPER - LOWER + 1e-8) / n_grid_cells
    middle = np.random.default_rng(n_grid_cells).integers(0, n_grid_cells, n_cells)
    cells = sorted({0, n_grid_cells - 1, *middle.tolist()})
    return [
        LOWER + (cell + FRACTIONS[(3 * i + j) % len(FRACTIONS)]) * step
        for i, cell in enumerate(cells)
        for j in range(2)
    ]


def worst_errors(
    functions: types.ModuleType, n_grid_cells: int, temperature: float, dtype: torch.dtype
) -> tuple[float, float]:
    """Error of the index relative to K, and of the slope relative to itself."""
    values = points_inside_cells(n_grid_cells, n_cells=3)
    x = torch.tensor(values, dtype=dtype, requires_grad=True)
    index = functions.soft_index(x, LOWER, UPPER, n_grid_cells, temperature)
    assert index.dtype == dtype
    (slope,) = torch.autograd.grad(index.sum(), x)
    index_error = slope_error = 0.0
    for i, value in enumerate(x.tolist()):
        expected, expected_slope = oracle.soft_index(value, LOWER, UPPER, n_grid_cells, temperature)
        index_error = max(index_error, abs(index[i].item() - expected) / n_grid_cells)
        # The smallest normal number: a slope below it is 0 for every purpose.
        scale = max(expected_slope, torch.finfo(dtype).tiny)
        slope_error = max(slope_error, abs(slope[i].item() - expected_slope) / scale)
    return index_error, slope_error


@pytest.mark.parametrize("n_grid_cells", N_CELLS)
@pytest.mark.parametrize("relative_temperature", TEMPERATURES)
def test_soft_index_equals_the_textbook_softmax(n_grid_cells, relative_temperature):
    temperature = relative_temperature * (UPPER - LOWER)
    index_error, slope_error = worst_errors(module, n_grid_cells, temperature, torch.float64)
    assert index_error <= 1e-9
    assert slope_error <= 1e-9


@pytest.mark.parametrize("n_grid_cells", N_CELLS)
@pytest.mark.parametrize("relative_temperature", [1e-4, 1e-2, 1.0, 100.0])
def test_soft_index_in_float32(n_grid_cells, relative_temperature):
    temperature = relative_temperature * (UPPER - LOWER)
    index_error, slope_error = worst_errors(module, n_grid_cells, temperature, torch.float32)
    assert index_error <= 1e-4
    assert slope_error <= 1e-4


@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(1, 12),
    n_grid_cells=st.integers(1, 300),
    log_temperature=st.floats(-3, 3),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    normalize=st.booleans(),
    fixed=st.booleans(),
)
def test_grid_loss_equals_the_oracle(
    seed, n_rows, n_grid_cells, log_temperature, scale, normalize, fixed
):
    rng = np.random.default_rng(seed)
    prediction, target = (scale * rng.standard_normal((2, n_rows))).tolist()
    temperature = 10**log_temperature * (1.0 if normalize else scale)
    if normalize:
        temperature = max(temperature, 1 / n_grid_cells)
    # Fixed bounds leave some values outside.
    bounds = (-scale, 0.9 * scale) if fixed else None
    x = torch.tensor(prediction, dtype=torch.float64, requires_grad=True)
    options = {"n_grid_cells": n_grid_cells, "temperature": temperature, "normalize": normalize}
    y = torch.tensor(target, dtype=torch.float64)
    losses = grid_loss(x, y, bounds=bounds, reduction="none", **options)
    mean = grid_loss(x, y, bounds=bounds, **options)
    (slopes,) = torch.autograd.grad(mean, x)
    expected, expected_slopes = oracle.grid_loss(
        prediction, target, n_grid_cells, temperature, normalize=normalize, bounds=bounds
    )
    unit = 2 * scale if normalize else n_grid_cells
    np.testing.assert_allclose(losses.detach(), expected, rtol=0, atol=1e-9 * unit)
    assert mean.item() == pytest.approx(sum(expected) / n_rows, abs=1e-9 * unit)
    step_temperature = temperature * (2 * scale if normalize else 1.0)
    inside = [
        i
        for i in range(n_rows)
        # Values on an anchor have two slopes; where the indices agree, the sign is rounding.
        if prediction[i] not in (min(prediction + target), max(prediction + target))
        and expected[i] > 1e-9 * unit
    ]
    np.testing.assert_allclose(
        slopes[inside] * n_rows,
        np.asarray(expected_slopes)[inside],
        rtol=1e-7,
        atol=1e-9 * unit / step_temperature,
    )


def test_slope_is_the_derivative_by_finite_differences():
    x = torch.tensor(points_inside_cells(7, n_cells=7), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: soft_index(v, LOWER, UPPER, 7, 0.4), x)


# One character or term of each step of the closed form.
MUTATIONS = [
    ("1e-8", "1e-2"),
    ("(1 / 12, -1 / 720,", "(1 / 12, 1 / 720,"),
    ("_SERIES_BELOW = 0.1", "_SERIES_BELOW = 4.0"),
    ("(torch.ones_like(cell), cell + 1,", "(torch.ones_like(cell), cell,"),
    ("n_grid_cells - cell))", "n_grid_cells + cell))"),
    ("length = n_anchors * step", "length = n_anchors"),
    ("(sides - 1) / 2", "sides / 2"),
    ("+ remainder[0] -", "- remainder[0] -"),
    ("- sides * remainder[1:]", "- remainder[1:]"),
    ("1 + reach[0] + reach[1]", "reach[0] + reach[1]"),
    ("torch.stack((fraction, 1 - fraction))", "torch.stack((1 - fraction, fraction))"),
    ("- distance) * step", "- distance)"),
    ("exponent * _LOG2_E", "exponent"),
    (" * filled[1:]", ""),
    ("2 * share[0] * share[1]", "share[0] * share[1]"),
    ("share[0] * share[1] * spread", "share[0] * share[1]"),
    ("cell - reach[0] +", "cell + reach[0] +"),
    ("+ share[1] * spread", "+ share[0] * spread"),
    ("t.reciprocal() - 0.5", "t.reciprocal() + 0.5"),
    ("series * t, direct", "series, direct"),
]


@pytest.mark.parametrize(("before", "after"), MUTATIONS)
def test_a_mutated_formula_fails_the_oracle(before, after):
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert source.count(before) == 1, "the mutation must change the source at one place"
    mutant = types.ModuleType("mutant")
    exec(compile(source.replace(before, after), "mutant", "exec"), mutant.__dict__)
    errors = [
        error
        for n_grid_cells, temperature in ((7, 0.3), (7, 3.0), (7, 100.0), (100, 0.05))
        for error in worst_errors(mutant, n_grid_cells, temperature, torch.float64)
    ]
    assert not max(errors) <= 1e-9


class TestLemmas:
    """The paper's statements about the raw form, on grids and values drawn at random."""

    grids = st.tuples(st.integers(1, 2000), st.floats(-4, 2).map(lambda p: 10**p))

    @given(grid=grids, seed=st.integers(0, 2**31))
    def test_monotone_and_lipschitz_with_slope_at_most_k_over_two_tau(self, grid, seed):
        n_grid_cells, temperature = grid
        generator = torch.Generator().manual_seed(seed)
        # Wider than the grid, so that the constant ends are in.
        x = 3 * torch.rand(200, generator=generator, dtype=torch.float64) - 1
        x = x.sort().values.requires_grad_()
        index = soft_index(x, 0.0, 1.0, n_grid_cells, temperature)
        (slope,) = torch.autograd.grad(index.sum(), x)
        largest_slope = n_grid_cells / (2 * temperature)
        rounding = 1e-13 * n_grid_cells
        rises, runs = index.diff(), x.diff()
        assert (rises >= -rounding).all()
        assert (rises <= largest_slope * runs + rounding).all()
        assert (slope >= 0).all()
        assert (slope <= largest_slope * (1 + 1e-12)).all()

    @given(grid=grids, seed=st.integers(0, 2**31))
    def test_gradient_of_the_loss_is_at_most_k_over_two_tau(self, grid, seed):
        n_grid_cells, temperature = grid
        generator = torch.Generator().manual_seed(seed)
        x, y = torch.randn(2, 50, generator=generator, dtype=torch.float64)
        x.requires_grad_()
        loss = grid_loss(x, y, n_grid_cells=n_grid_cells, temperature=temperature, reduction="none")
        (slope,) = torch.autograd.grad(loss.sum(), x)
        assert (slope.abs() <= n_grid_cells / (2 * temperature) * (1 + 1e-12)).all()

    def test_the_slope_bound_is_reached_with_one_cell(self):
        x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
        soft_index(x, 0.0, 1.0 - 1e-8, 1, 0.2).backward()
        assert x.grad.item() == pytest.approx(1 / (2 * 0.2), rel=1e-12)

    def test_zero_as_the_temperature_grows(self):
        x, y = torch.randn(2, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        losses = [
            grid_loss(x, y, n_grid_cells=100, temperature=10.0**p).item() for p in range(0, 13, 3)
        ]
        assert all(after < before for before, after in pairwise(losses))
        assert losses[-1] < 1e-9
        assert soft_index(x, -3.0, 3.0, 100, 1e12).numpy() == pytest.approx(50.0)

    def test_hard_bin_distance_as_the_temperature_falls(self):
        x, y = torch.rand(2, 200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        hard = (20 * x).round() - (20 * y).round()
        soft = grid_loss(
            x, y, n_grid_cells=20, temperature=1e-6, bounds=(0.0, 1.0 - 1e-8), reduction="none"
        )
        np.testing.assert_allclose(soft, hard.abs(), atol=1e-9)

    def test_mae_in_the_limit_of_fine_grids_then_low_temperature(self):
        x, y = torch.rand(2, 100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

        def smoothed(values: torch.Tensor, temperature: float) -> torch.Tensor:
            """Mean of the truncated Laplace density on [0, 1], integrated by hand."""
            left, right = values / temperature, (1 - values) / temperature
            mass = 2 - torch.exp(-left) - torch.exp(-right)
            moment = (right + 1) * -torch.exp(-right) + (left + 1) * torch.exp(-left)
            return values + temperature * moment / mass

        errors = []
        for temperature in (0.3, 0.03, 0.003, 0.0003):
            limit = (smoothed(x, temperature) - smoothed(y, temperature)).abs()
            by_cells = [
                grid_loss(
                    x,
                    y,
                    n_grid_cells=n_grid_cells,
                    temperature=temperature,
                    normalize=True,
                    bounds=(0.0, 1.0 - 1e-8),
                    reduction="none",
                )
                for n_grid_cells in (10**5, 10**6, 10**7)
            ]
            gaps = [(loss - limit).abs().max().item() for loss in by_cells]
            assert gaps[2] < gaps[0]
            assert gaps[2] < 1e-5
            errors.append((by_cells[2] - (x - y).abs()).abs().max().item())
        assert all(after < before for before, after in pairwise(errors))
        assert errors[-1] < 1e-3


class TestAnchorsAndOutside:
    def test_right_hand_slope_at_anchors_and_left_hand_at_the_last(self):
        # An upper bound that makes the anchors exact: 0, 1, 2, 3, 4.
        upper, temperature = 4.0 - 1e-8, 0.7
        anchors = torch.arange(5, dtype=torch.float64)

        def slopes(x: torch.Tensor) -> torch.Tensor:
            x = x.clone().requires_grad_()
            return torch.autograd.grad(soft_index(x, 0.0, upper, 4, temperature).sum(), x)[0]

        near = torch.tensor([1e-9, 1e-9, 1e-9, 1e-9, -1e-9], dtype=torch.float64)
        np.testing.assert_allclose(slopes(anchors), slopes(anchors + near), rtol=1e-6)
        assert not np.allclose(slopes(anchors)[1:4], slopes(anchors - 1e-9)[1:4], rtol=1e-3)

    def test_constant_to_the_bit_with_slope_zero_outside(self):
        x = torch.tensor([-1e30, -1.0, 0.0, 1.0, 1.1, 1e30], requires_grad=True)
        index = soft_index(x, 0.0, 1.0 - 1e-3, 10, 0.3)
        index.sum().backward()
        assert index[0] == index[1] == index[2]
        assert index[3] == index[4] == index[5]
        assert (x.grad[[0, 1, 3, 4, 5]] == 0).all()
        assert x.grad[2] > 0

    @given(seed=st.integers(0, 2**31), n_grid_cells=st.integers(1, 1000))
    def test_the_extreme_predictions_of_a_batch_keep_a_gradient(self, seed, n_grid_cells):
        generator = torch.Generator().manual_seed(seed)
        y = torch.rand(20, generator=generator)
        x = (100 * torch.randn(20, generator=generator)).requires_grad_()
        grid_loss(x, y, n_grid_cells=n_grid_cells, temperature=50.0).backward()
        assert x.grad[x.argmin()] != 0
        assert x.grad[x.argmax()] != 0


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_grid_cells", [1, 1000])
@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        ([2.5] * 4, [2.5] * 4),
        ([1.0], [1.0]),
        ([1.0], [3.0]),
        ([1e30, -1e30, 3e29], [0.0, 1e30, -1e30]),
        ([1e-30, -1e-30, 0.0], [0.0, 2e-30, 1e-30]),
        ([3e38, -3e38], [-3e38, 3e38]),
        ([1e8, 1e8 + 8], [1e8 + 8, 1e8]),
    ],
    ids=["equal", "one row", "one row apart", "huge", "tiny", "largest", "far from zero"],
)
def test_corners_stay_finite(prediction, target, n_grid_cells, dtype, normalize):
    for temperature in (1.0,) if normalize else (1e-6, 1.0, 1e6):
        x = torch.tensor(prediction, dtype=dtype, requires_grad=True)
        y = torch.tensor(target, dtype=dtype)
        options = {"n_grid_cells": n_grid_cells, "temperature": temperature}
        loss = grid_loss(x, y, normalize=normalize, **options)
        loss.backward()
        assert loss.dtype == dtype
        assert loss.isfinite()
        assert x.grad.isfinite().all()
        expected, _ = oracle.grid_loss(
            x.tolist(), y.tolist(), n_grid_cells, temperature, normalize=normalize
        )
        unit = max(x.max().item(), y.max().item()) - min(x.min().item(), y.min().item()) + 1e-8
        assert loss.item() == pytest.approx(
            math.fsum(expected) / len(expected), abs=1e-6 * (unit if normalize else n_grid_cells)
        )


@pytest.mark.parametrize("temperature", [1e-300, 1e300])
def test_temperatures_at_the_end_of_float64(temperature):
    x = torch.linspace(0, 1, 12, dtype=torch.float64, requires_grad=True)
    index = soft_index(x, 0.0, 1.0, 5, temperature)
    index.sum().backward()
    assert index.isfinite().all()
    assert x.grad.isfinite().all()


def test_nan_predictions_give_nan_rather_than_a_number():
    x = torch.tensor([0.5, math.nan])
    loss = grid_loss(
        x, torch.zeros(2), n_grid_cells=4, temperature=1.0, bounds=(0.0, 1.0), reduction="none"
    )
    assert loss.isfinite().tolist() == [True, False]


@given(scale=st.sampled_from([1e-3, 1.0, 1e5]), shift=st.floats(-100, 100))
def test_the_normalised_loss_moves_with_the_units_of_the_target(scale, shift):
    x, y = torch.randn(2, 30, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    options = {"n_grid_cells": 50, "temperature": 0.1, "normalize": True}
    base = grid_loss(x, y, **options).item()
    moved = grid_loss(scale * (x + shift), scale * (y + shift), **options).item()
    # The paper's constant of 1e-8 is what does not scale.
    assert moved == pytest.approx(scale * base, rel=1e-4)


@given(n_grid_cells=st.integers(1, 2000), softness=st.floats(1, 1000), scale=st.floats(1e-6, 1e6))
def test_the_normalised_slope_is_at_most_one_over_twice_the_temperature(
    n_grid_cells, softness, scale
):
    temperature = softness / n_grid_cells
    x, y = scale * torch.randn(
        2, 40, generator=torch.Generator().manual_seed(5), dtype=torch.float64
    )
    x.requires_grad_()
    loss = grid_loss(x, y, n_grid_cells=n_grid_cells, temperature=temperature, normalize=True)
    (slope,) = torch.autograd.grad(40 * loss, x)
    assert (slope.abs() <= (1 + 1e-12) / (2 * temperature)).all()


def test_fixed_bounds_make_a_row_independent_of_its_batch():
    x, y = torch.randn(2, 30, generator=torch.Generator().manual_seed(3))
    options = {"n_grid_cells": 50, "temperature": 0.1, "bounds": (-1.0, 1.0), "reduction": "none"}
    whole = grid_loss(x, y, **options)
    assert torch.equal(whole[7:9], grid_loss(x[7:9], y[7:9], **options))


def test_no_gradient_reaches_the_bounds():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    lower, upper = grid_bounds(x, torch.tensor([2.0]))
    assert not lower.requires_grad
    assert (lower.item(), upper.item(), lower.dtype) == (0.0, 2.0, torch.float64)
    bound = torch.tensor(2.0, requires_grad=True)
    soft_index(x, 0.0, bound, 4, 0.5).sum().backward()
    assert bound.grad is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_predictions_give_a_float32_loss(dtype):
    x = torch.tensor([0.0, 1.0], dtype=dtype, requires_grad=True)
    loss = grid_loss(x, torch.tensor([1.0, 3.0]), n_grid_cells=10, temperature=0.5)
    loss.backward()
    assert loss.dtype == torch.float32
    assert x.grad.dtype == dtype


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_grid_cells": 0}, "n_grid_cells must be an integer >= 1, got 0"),
        ({"n_grid_cells": 2.5}, "n_grid_cells must be an integer >= 1, got 2.5"),
        ({"temperature": 0.0}, "temperature must be finite and > 0, got 0.0"),
        ({"temperature": math.nan}, "temperature must be finite and > 0, got nan"),
        ({"temperature": math.inf}, "temperature must be finite and > 0, got inf"),
        ({"temperature": 0.05, "normalize": True}, r"temperature \* n_grid_cells must be >= 1"),
        ({"reduction": "sum"}, 'reduction must be "mean" or "none"'),
    ],
)
def test_options_outside_their_rules(options, message):
    options = {"n_grid_cells": 10, "temperature": 1.0, **options}
    with pytest.raises(InvalidOptionError, match=message):
        grid_loss(torch.zeros(2), torch.ones(2), **options)


def test_a_temperature_of_one_cell_is_allowed_whatever_its_rounding():
    for n_grid_cells in range(1, 2000):
        module.check_grid_options(n_grid_cells, 1 / n_grid_cells, normalize=True)


@pytest.mark.parametrize("shape", [(3, 1), (0,)])
def test_shapes_that_would_broadcast_or_are_empty(shape):
    with pytest.raises(InvalidDataError, match="same shape and at least one value"):
        grid_loss(torch.zeros(shape), torch.zeros(shape[:1]), n_grid_cells=4, temperature=1.0)
