from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tabnsm.errors import InvalidOptionError
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.config import TrainingConfig


def walk(keep: float, n_steps: int) -> tuple[nn.Linear, WeightAverage, list[float]]:
    """A model whose weight is a new draw after every step."""
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, keep)
    values = np.random.default_rng(0).normal(size=n_steps).tolist()
    for value in values:
        nn.init.constant_(model.weight, value)
        average.update()
    return model, average, values


def averaged(model: nn.Linear, average: WeightAverage) -> float:
    with average.applied():
        return model.weight.item()


def test_late_steps_weigh_as_an_exponential_average() -> None:
    model, average, values = walk(0.9, 300)
    weights = 0.1 * 0.9 ** np.arange(300)[::-1]
    assert averaged(model, average) == pytest.approx(float(weights @ values), abs=1e-4)
    assert model.weight.item() == pytest.approx(values[-1])


def test_early_steps_forget_the_start() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1000.0)
    average = WeightAverage(model, 0.999)
    nn.init.constant_(model.weight, 1.0)
    for _ in range(100):
        average.update()
    assert averaged(model, average) == pytest.approx(1.0, abs=1e-3)


def test_without_averaging_the_weights_themselves_are_used() -> None:
    model, average, values = walk(0.0, 3)
    assert averaged(model, average) == pytest.approx(values[-1])
    assert average.state_dict() == {}


def test_the_weights_are_restored_after_an_error() -> None:
    model, average, values = walk(0.9, 5)
    with pytest.raises(KeyboardInterrupt), average.applied():
        raise KeyboardInterrupt
    assert model.weight.item() == pytest.approx(values[-1])


def test_state_goes_on() -> None:
    model, average, _ = walk(0.9, 7)
    other = WeightAverage(model, 0.9)
    other.load_state_dict({name: value.clone() for name, value in average.state_dict().items()})
    for each in (average, other):
        each.update()
    assert torch.equal(average.values["weight"], other.values["weight"])
    assert other.n_steps == 8


def test_a_copy_of_both_stays_together() -> None:
    model, average, _ = walk(0.9, 3)
    model, average = copy.deepcopy((model, average))
    nn.init.constant_(model.weight, 5.0)
    before = average.values["weight"].clone()
    average.update()
    assert not torch.equal(average.values["weight"], before)
    with average.applied():
        assert torch.equal(model.weight, average.values["weight"])


@pytest.mark.parametrize("keep", [-0.1, 1, float("nan"), "much"])
def test_shares_that_average_nothing_are_refused(keep: object) -> None:
    with pytest.raises(InvalidOptionError, match=r"ema_decay must be in \[0, 1\), got"):
        TrainingConfig(ema_decay=keep)  # type: ignore[arg-type]
