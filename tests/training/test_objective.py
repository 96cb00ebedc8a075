"""The blended objective: its parts, its weights and its fixed grid."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.functional.grid_loss import soft_index
from tabnsm.training.objective import Objective, ObjectiveConfig
from tests.oracles import grid_loss as oracle
from tests.oracles import several_targets as several


def huber(prediction: list[float], target: list[float], delta: float) -> list[float]:
    """The Huber loss, row by row."""
    losses = []
    for y_hat, y in zip(prediction, target, strict=True):
        residual = abs(y_hat - y)
        square = residual**2 / 2
        losses.append(square if residual <= delta else delta * (residual - delta / 2))
    return losses


def batch(n_rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    prediction, target = torch.randn(
        2, n_rows, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return prediction, target  # (n_rows, 1)


@given(
    huber_weight=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    huber_delta=st.floats(0.1, 3),
    n_grid_cells=st.integers(50, 200),
    normalize_grid=st.booleans(),
    weighted=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_blend_equals_its_parts(
    huber_weight, huber_delta, n_grid_cells, normalize_grid, weighted, seed
):
    config = ObjectiveConfig(
        huber_weight=huber_weight,
        huber_delta=huber_delta,
        n_grid_cells=n_grid_cells,
        normalize_grid=normalize_grid,
    )
    prediction, target = batch(9, seed)
    y_hat, y = prediction[:, 0].tolist(), target[:, 0].tolist()
    weight = np.random.default_rng(seed).uniform(0.1, 3, 9) if weighted else np.ones(9)

    def blend(bounds: tuple[float, float] | None) -> np.ndarray:
        grid, _ = oracle.grid_loss(
            y_hat, y, n_grid_cells, config.temperature, normalize=normalize_grid, bounds=bounds
        )
        square_or_straight = np.asarray(huber(y_hat, y, huber_delta))
        return huber_weight * square_or_straight + (1 - huber_weight) * np.asarray(grid)

    objective = Objective(config)
    loss = objective.batch_loss(
        prediction, target, torch.from_numpy(weight) if weighted else None
    ).item()
    assert loss == pytest.approx((weight * blend(None)).mean(), rel=1e-9)
    rows = objective.row_losses(prediction, target, bounds=[(-1.0, 1.5)])
    np.testing.assert_allclose(rows, blend((-1.0, 1.5)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "of"),
    [
        ("mse", lambda r: r * r),
        ("mae", abs),
        ("log_cosh", lambda r: math.log(math.cosh(r))),
    ],
)
def test_a_plain_loss_takes_the_place_of_the_blend(loss, of):
    prediction, target = batch(9)
    expected = [of(float(a - b)) for a, b in zip(prediction, target, strict=True)]
    objective = Objective(ObjectiveConfig(loss=loss, huber_weight=0.0))
    rows = objective.row_losses(prediction, target, [(0.0, 0.1)])
    np.testing.assert_allclose(rows, expected, rtol=1e-12)
    weight = torch.linspace(0.1, 1.9, 9, dtype=torch.float64)
    mean = objective.batch_loss(prediction, target, weight).item()
    assert mean == pytest.approx(float(np.mean(weight.numpy() * expected)), rel=1e-12)


def test_log_cosh_of_residuals_whose_cosh_overflows():
    x = torch.tensor([[1e4], [-1e30], [0.0]], requires_grad=True)
    rows = Objective(ObjectiveConfig(loss="log_cosh")).row_losses(
        x, torch.zeros(3, 1), [(0.0, 1.0)]
    )
    rows.sum().backward()
    assert rows[:2].tolist() == pytest.approx([1e4 - math.log(2), 1e30])
    assert rows[2].item() == pytest.approx(0, abs=1e-7)
    assert x.grad[:, 0].tolist() == pytest.approx([1.0, -1.0, 0.0])


@pytest.mark.parametrize("huber_weight", [0.0, 0.5, 1.0])
def test_a_row_does_not_depend_on_its_batch_under_fixed_bounds(huber_weight):
    objective = Objective(ObjectiveConfig(huber_weight=huber_weight))
    prediction, target = batch(20)
    whole = objective.row_losses(prediction, target, [(-2.0, 2.0)])
    alone = [
        objective.row_losses(prediction[i : i + 1], target[i : i + 1], [(-2.0, 2.0)])
        for i in range(20)
    ]
    assert torch.equal(whole, torch.cat(alone))


def test_a_part_of_weight_zero_is_not_computed():
    # An infinite prediction puts NaN into the batch's grid, which 0 * NaN would pass on.
    prediction, target = torch.tensor([[math.inf], [0.0]]), torch.tensor([[0.0], [1.0]])
    huber_alone = Objective(ObjectiveConfig(huber_weight=1.0)).batch_loss(prediction, target)
    assert huber_alone.item() == math.inf
    grid_alone = Objective(ObjectiveConfig(huber_weight=0.0)).row_losses(
        prediction, target, [(0.0, 1.0)]
    )
    assert grid_alone.isfinite().all()


def test_even_weights_of_mean_one_change_nothing():
    objective = Objective(ObjectiveConfig())
    prediction, target = batch(10)
    even = objective.batch_loss(prediction, target, torch.ones(10))
    assert even.item() == pytest.approx(objective.batch_loss(prediction, target).item())


def test_integer_sample_weights_act_like_repeated_rows():
    objective = Objective(ObjectiveConfig())
    prediction, target = batch(6)
    times = torch.tensor([1, 2, 3, 1, 2, 1])
    repeated = objective.batch_loss(
        prediction.repeat_interleave(times, dim=0), target.repeat_interleave(times, dim=0)
    )
    weighted = objective.batch_loss(prediction, target, times / times.double().mean())
    assert weighted.item() == pytest.approx(repeated.item(), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_losses_are_at_least_float32_and_have_gradients(dtype):
    prediction, target = batch(8)
    x = prediction.to(dtype).requires_grad_()
    loss = Objective(ObjectiveConfig()).batch_loss(x, target.float(), torch.ones(8))
    loss.backward()
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    assert x.grad.dtype == dtype
    assert x.grad.isfinite().all()


def test_the_default_grid_has_a_slope_near_one():
    config = ObjectiveConfig()
    x = torch.linspace(0, 1, 10_001, dtype=torch.float64, requires_grad=True)
    index = soft_index(x, 0.0, 1.0, config.n_grid_cells, config.temperature)
    (slope,) = torch.autograd.grad(index.sum() / config.n_grid_cells, x)
    assert (slope[1500:-1500] - 1).abs().max() < 0.05
    assert slope.min() > 0.39


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "huber"}, "loss must be one of .*'log_cosh'.*, got 'huber'"),
        ({"huber_weight": -0.1}, "huber_weight must be between 0 and 1, got -0.1"),
        ({"huber_weight": math.nan}, "huber_weight must be between 0 and 1, got nan"),
        ({"huber_delta": 0.0}, "huber_delta must be finite and > 0, got 0.0"),
        ({"n_grid_cells": 0}, "n_grid_cells must be an integer >= 1, got 0"),
        ({"temperature": -1.0}, "temperature must be finite and > 0, got -1.0"),
        ({"n_grid_cells": 10}, r"temperature \* n_grid_cells must be >= 1"),
        ({"normalize_grid": "yes"}, "normalize_grid must be True or False, got 'yes'"),
    ],
)
def test_options_outside_their_rules(options, message):
    with pytest.raises(InvalidOptionError, match=message):
        ObjectiveConfig(**options)


def test_shapes_that_would_broadcast():
    objective = Objective(ObjectiveConfig())
    with pytest.raises(InvalidDataError, match=r"shape \(n_rows, n_targets\)"):
        objective.batch_loss(torch.zeros(4, 1), torch.zeros(4))
    with pytest.raises(InvalidDataError, match=r"shape \(n_rows, n_targets\)"):
        objective.batch_loss(torch.zeros(4), torch.zeros(4))
    with pytest.raises(InvalidDataError, match=r"shape \(n_rows, n_targets\)"):
        objective.row_losses(torch.zeros(0, 1), torch.zeros(0, 1), [(0.0, 1.0)])
    with pytest.raises(InvalidDataError, match="sample_weight must have one weight for each"):
        objective.batch_loss(torch.zeros(4, 1), torch.ones(4, 1), torch.ones(1))


@pytest.mark.parametrize("loss", ["blend", "mse"])
def test_the_loss_of_a_row_is_the_mean_over_its_targets(loss):
    objective = Objective(ObjectiveConfig(loss=loss))
    parts = [batch(9, seed) for seed in range(3)]
    prediction, target = (torch.cat(side, dim=1) for side in zip(*parts, strict=True))
    bounds = [(-2.0, 1.0), (-1.0, 2.0), (-3.0, 3.0)]  # a grid of its own for each target
    alone = [objective.row_losses(*part, [own]) for part, own in zip(parts, bounds, strict=True)]
    rows = objective.row_losses(prediction, target, bounds)
    torch.testing.assert_close(rows, torch.stack(alone).mean(dim=0))
    weight = torch.linspace(0.1, 1.9, 9, dtype=torch.float64)
    each = [objective.batch_loss(*part, weight) for part in parts]
    whole = objective.batch_loss(prediction, target, weight)
    torch.testing.assert_close(whole, torch.stack(each).mean())


@pytest.mark.parametrize(
    ("levels", "options", "loss"),
    [
        (12, {}, "mse"),
        (13, {}, "blend"),
        (5, {"loss": "blend"}, "blend"),
        (5, {"loss": "mae"}, "mae"),
        (5, {"n_grid_cells": 50}, "blend"),
        (5, {"normalize_grid": False, "temperature": 1.0}, "blend"),
        (13, {"loss": "mse"}, "mse"),
    ],
)
def test_auto_is_squared_error_for_ratings(levels, options, loss):
    ratings = np.repeat(np.arange(float(levels)), 20)[:, None]
    config = ObjectiveConfig(**options)
    resolved = config.for_target(ratings)
    assert resolved == dataclasses.replace(config, loss=loss)
    assert resolved.for_target(np.arange(100.0)[:, None]) == resolved


def test_auto_is_chosen_for_each_target():
    ratings = np.repeat(np.arange(5.0), 20)
    ratings[3] = np.nan
    both = np.stack([ratings, np.arange(100.0)], axis=1)
    assert ObjectiveConfig().for_target(np.stack([ratings] * 2, axis=1)).loss == "mse"
    mixed = ObjectiveConfig().for_target(both)
    assert mixed.loss == "auto"
    assert mixed.losses_of(both) == ("mse", "blend")
    assert ObjectiveConfig(loss="mae").losses_of(both) == ("mae", "mae")
    objective = Objective(mixed, mixed.losses_of(both))
    parts = [batch(9, seed) for seed in range(2)]
    prediction, target = (torch.cat(side, dim=1) for side in zip(*parts, strict=True))
    alone = [
        Objective(ObjectiveConfig(loss=loss)).row_losses(*part, [(-1.0, 2.0)])
        for loss, part in zip(("mse", "blend"), parts, strict=True)
    ]
    rows = objective.row_losses(prediction, target, [(-1.0, 2.0)] * 2)
    torch.testing.assert_close(rows, torch.stack(alone).mean(dim=0))


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("normalize_grid", [True, False])
def test_several_targets_with_missing_entries_equal_the_oracle(fixed, normalize_grid):
    rng = np.random.default_rng(0)
    prediction, target = rng.normal(size=(2, 6, 3))
    target[rng.random((6, 3)) < 0.4] = np.nan
    target[0] = [1.0, np.nan, np.nan]
    config = ObjectiveConfig(
        n_grid_cells=5, temperature=0.5, normalize_grid=normalize_grid, huber_weight=0.3
    )
    bounds = [(-3.0, 2.0), (-2.5, 3.0), (-3.0, 3.0)] if fixed else None
    expected = several.row_losses(
        prediction.tolist(),
        [[None if np.isnan(y) else y for y in row] for row in target.tolist()],
        5,
        0.5,
        normalize=normalize_grid,
        huber_weight=0.3,
        bounds=bounds,
    )
    x, y = torch.from_numpy(prediction), torch.from_numpy(target)
    objective = Objective(config)
    if bounds is not None:
        rows = objective.row_losses(x, y, bounds)
        np.testing.assert_allclose(rows, expected, rtol=1e-9)
    else:
        weight = torch.linspace(0.5, 1.5, 6, dtype=torch.float64)
        loss = objective.batch_loss(x, y, weight).item()
        assert loss == pytest.approx(float(np.mean(weight.numpy() * expected)), rel=1e-9)
