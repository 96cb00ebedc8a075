from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tabnsm.kernels import available
from tabnsm.nn import TabNSM
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.config import TrainingConfig
from tabnsm.training.descent import make_optimizer

compiled = pytest.mark.skipif(available() == "none", reason="no compiled kernel")


def trained(model: nn.Module, keep: float, steps: int, clip: float) -> tuple[Tensor, ...]:
    """All that steps of training leave, on rows whose gradients are clipped now and then."""
    optimizer = make_optimizer(model, TrainingConfig(weight_decay=0.1))
    average = WeightAverage(model, keep)
    x = torch.randn(steps, 16, 5, generator=torch.Generator().manual_seed(1))
    for k in range(steps):
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = 0.01 / (1 + k // 4)
        loss = model(x[k] * (1 + 5 * (k % 3))).square().mean()
        optimizer.descend(loss, average, clip)
    states = [state for state in optimizer.state.values() for state in state.values()]
    return (*model.parameters(), *average.values.values(), *states, torch.tensor(average.n_steps))


@compiled
@pytest.mark.parametrize("keep", [0.0, 0.9])
@pytest.mark.parametrize("clip", [0.3, 1e30])
def test_steps_are_those_of_torch(
    keep: float, clip: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 33), nn.Tanh(), nn.Linear(33, 3))
    ours = trained(copy.deepcopy(model), keep, 12, clip)
    monkeypatch.setattr("tabnsm.training.descent.serves_adamw", lambda _: False)
    theirs = trained(copy.deepcopy(model), keep, 12, clip)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-6)


def test_a_gradient_that_is_not_finite_spoils_the_weights_as_in_torch() -> None:
    for value in (np.nan, np.inf):
        model = nn.Linear(2, 2)
        optimizer, average = make_optimizer(model, TrainingConfig()), WeightAverage(model, 0.9)
        for x in (torch.ones(1, 2), torch.full((1, 2), value)):
            optimizer.descend(model(x).sum(), average, 1.0)
        assert model.weight.isnan().all()


@compiled
def test_tensors_that_a_checkpoint_puts_into_the_state_are_those_that_move() -> None:
    model = nn.Linear(3, 2)
    optimizer, average = make_optimizer(model, TrainingConfig()), WeightAverage(model, 0.9)
    for k in range(3):
        if k == 2:
            for state in optimizer.state.values():
                state.update({name: value.clone() for name, value in state.items()})
            kept = [copy.deepcopy(state) for state in optimizer.state.values()]
        optimizer.descend(model(torch.ones(1, 3)).sum(), average, 1.0)
    for before, state in zip(kept, optimizer.state.values(), strict=True):
        assert state["step"] == before["step"] + 1 == 3
        assert not torch.equal(state["exp_avg"], before["exp_avg"])


def test_weights_without_a_gradient_stay() -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 1), "idle": nn.Linear(2, 1)})
    idle = model["idle"].state_dict()
    before = copy.deepcopy(idle)
    optimizer, average = make_optimizer(model, TrainingConfig()), WeightAverage(model, 0.9)
    for _ in range(3):
        optimizer.descend(model["used"](torch.ones(1, 2)).sum(), average, 1.0)
    assert all(
        torch.equal(before[name], value) for name, value in model["idle"].state_dict().items()
    )


def test_only_matrices_decay() -> None:
    model = TabNSM(5, d_token=8, head_width=16)
    decayed, free = make_optimizer(model, TrainingConfig(weight_decay=0.1)).param_groups
    assert (decayed["weight_decay"], free["weight_decay"]) == (0.1, 0.0)
    names = {id(p): name for name, p in model.named_parameters()}
    assert all(p.ndim >= 2 for p in decayed["params"])
    assert "tokenizer.weight" in {names[id(p)] for p in free["params"]}
