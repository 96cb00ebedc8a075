"""GridLoss of several targets against one grid over all of them, with missing entries."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tabnsm.functional.several_targets as module
from tabnsm.functional.grid_loss import grid_loss
from tests.mutation import mutated
from tests.oracles import several_targets as oracle


def rows_of(functions: ModuleType, prediction, target, n_cells, temperature, normalize):
    """Mean over the targets of GridLoss, each on the grid of its column."""
    filled, wanted, present = functions.fill_missing(prediction, target)
    losses = grid_loss(
        filled,
        wanted,
        n_grid_cells=n_cells,
        temperature=temperature,
        normalize=normalize,
        bounds=functions.grids_of_targets(filled, wanted, present),
        reduction="none",
    )
    return functions.mean_over_targets(losses, present)


def batch(seed: int, n_rows: int, n_targets: int, share_missing: float):
    rng = np.random.default_rng(seed)
    scale, shift = rng.uniform(0.2, 5, n_targets), rng.uniform(3, 9, n_targets)
    prediction, target = rng.normal(size=(2, n_rows, n_targets)) * scale + shift
    target[rng.random((n_rows, n_targets)) < share_missing] = np.nan
    return torch.from_numpy(prediction), torch.from_numpy(target)


def as_lists(target: torch.Tensor) -> list[list[float | None]]:
    return [[None if np.isnan(y) else y for y in row] for row in target.tolist()]


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 5),
    n_targets=st.integers(2, 3),
    n_cells=st.integers(2, 6),
    normalize=st.booleans(),
    share_missing=st.sampled_from([0.0, 0.3, 0.8]),
)
def test_a_grid_per_target_is_the_grid_over_all_targets(
    seed, n_rows, n_targets, n_cells, normalize, share_missing
):
    prediction, target = batch(seed, n_rows, n_targets, share_missing)
    temperature = 0.6 if normalize else 1.5
    rows = rows_of(module, prediction, target, n_cells, temperature, normalize)
    expected = oracle.row_losses(
        prediction.tolist(),
        as_lists(target),
        n_cells,
        temperature,
        normalize=normalize,
        huber_weight=0.0,
    )
    np.testing.assert_allclose(rows, expected, rtol=1e-9, atol=1e-12)


def test_the_unit_of_a_target_does_not_change_the_normalised_loss_of_another():
    prediction, target = batch(0, 20, 2, 0.2)
    prediction.requires_grad_()
    rows_of(module, prediction, target, 100, 0.02, True).mean().backward()
    unit = torch.tensor([1.0, 1e6], dtype=torch.float64)
    scaled = (prediction.detach() * unit).requires_grad_()
    rows_of(module, scaled, target * unit, 100, 0.02, True).mean().backward()
    torch.testing.assert_close(scaled.grad[:, 0], prediction.grad[:, 0])


def test_missing_entries_have_no_gradient_and_do_not_widen_a_grid():
    prediction, target = batch(1, 12, 3, 0.4)
    prediction[target.isnan()] = 1e9
    x = prediction.clone().requires_grad_()
    rows = rows_of(module, x, target, 50, 0.1, True)
    rows.sum().backward()
    assert (x.grad[target.isnan()] == 0).all()
    assert (x.grad[~target.isnan()] != 0).any()
    other = torch.where(target.isnan(), -7.0, prediction)
    torch.testing.assert_close(rows, rows_of(module, other, target, 50, 0.1, True))


def test_the_slope_of_a_row_is_bounded_in_every_target():
    prediction, target = batch(2, 30, 3, 0.0)
    x = prediction.clone().requires_grad_()
    rows_of(module, x, target, 40, 0.7, False).sum().backward()
    assert x.grad.abs().max() <= 40 / (2 * 0.7) / 3 + 1e-9


def test_a_target_or_a_row_without_entries():
    prediction, target = batch(3, 4, 2, 0.0)
    target[:, 1] = torch.nan
    target[2] = torch.nan
    rows = rows_of(module, prediction, target, 10, 0.2, True)
    assert rows[2] == 0
    alone = rows_of(module, prediction[:, :1], target[:, :1], 10, 0.2, True)
    torch.testing.assert_close(rows, alone)


MUTATIONS = {
    "missing predictions widen the grid": ("values.masked_fill(~present, -math.inf)", "values"),
    "missing targets widen the grid": ("values.masked_fill(~present, math.inf)", "values"),
    "one grid for all targets": (".amax(dim=(0, 1))", ".amax()"),
    "mean over all targets": (
        "losses.sum(dim=1) / present.sum(dim=1).clamp(min=1)",
        "losses.mean(1)",
    ),
    "sum over targets": (" / present.sum(dim=1).clamp(min=1)", ""),
    "predictions for missing targets count": ("prediction.masked_fill(missing, 0.0)", "prediction"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutated_formula_fails_the_oracle(name):
    broken = mutated(module, *MUTATIONS[name])
    differences = []
    for shift in (-20.0, 0.0, 20.0):  # a zero in place of a missing entry above, among, below
        prediction, target = (values + shift for values in batch(4, 5, 3, 0.3))
        arguments = (prediction, target, 4, 0.6, True)
        expected = oracle.row_losses(
            prediction.tolist(), as_lists(target), 4, 0.6, normalize=True, huber_weight=0.0
        )
        np.testing.assert_allclose(rows_of(module, *arguments), expected, rtol=1e-9)
        differences.append(np.abs(rows_of(broken, *arguments).numpy() - expected).max())
    assert max(differences) > 1e-3
