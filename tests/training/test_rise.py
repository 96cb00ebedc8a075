"""RISE's sampler: what it draws, when it refreshes, and whose gradient it follows."""

from __future__ import annotations

import pytest
import torch

from tabnsm.errors import InvalidDataError, InvalidOptionError, ModelFileError
from tabnsm.training.objective import Objective, ObjectiveConfig
from tabnsm.training.rise import RiseConfig, RiseSampler

DRAWS = ("systematic", "multinomial")


def sampler(n_rows: int, seed: int = 0, **options: object) -> RiseSampler:
    return RiseSampler(n_rows, RiseConfig(**options), torch.Generator().manual_seed(seed))


class TestReweightedRisk:
    """The paper's proposition, on a linear model and the per-row loss on a fixed grid."""

    n_rows = 24

    @pytest.fixture
    def problem(self):
        generator = torch.Generator().manual_seed(0)
        features = torch.randn(self.n_rows, 3, generator=generator, dtype=torch.float64)
        target = features.sum(1) + torch.randn(self.n_rows, generator=generator).double() ** 3
        theta = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
        bounds = [(target.min(), target.max())]
        objective = Objective(ObjectiveConfig())

        def losses() -> torch.Tensor:
            return objective.row_losses((features @ theta)[:, None], target[:, None], bounds)

        gradients = torch.stack(
            [torch.autograd.grad(losses()[i], theta)[0] for i in range(self.n_rows)]
        )  # (n_rows, 3)
        return theta, losses, gradients

    @staticmethod
    def reweighted_gradient(theta, losses, weights) -> torch.Tensor:
        risk = (weights * losses()).sum() / weights.sum()
        return torch.autograd.grad(risk, theta)[0]

    def test_exact_expectation(self, problem):
        theta, losses, gradients = problem
        rise = sampler(self.n_rows, max_boost=4.0)
        rise.refresh(losses().detach())
        assert rise.weights.unique().tolist() == [1.0, 1.75, 2.5, 3.25, 4.0]
        probability = rise.weights / rise.weights.sum()
        expected = sum(probability[i] * gradients[i] for i in range(self.n_rows))
        torch.testing.assert_close(
            expected, self.reweighted_gradient(theta, losses, rise.weights), rtol=1e-12, atol=1e-14
        )
        uniform = gradients.mean(0)
        assert not torch.allclose(expected, uniform, rtol=0.05)

    @pytest.mark.parametrize("draw", DRAWS)
    def test_sampled_steps_follow_it(self, problem, draw):
        theta, losses, gradients = problem
        rise = sampler(self.n_rows, max_boost=4.0, rise_sampling=draw)
        rise.refresh(losses().detach())
        # The first batch of each epoch alone: later ones would hide an order that is not random.
        batch_size = 6
        steps = torch.stack(
            [gradients[rise.epoch_rows()[:batch_size]].mean(0) for _ in range(1500)]
        )  # (n_epochs, 3)
        expected = self.reweighted_gradient(theta, losses, rise.weights)
        standard_error = steps.std(0) / len(steps) ** 0.5
        assert ((steps.mean(0) - expected).abs() < 4 * standard_error).all()
        # The test has the power to tell the two risks apart.
        assert ((gradients.mean(0) - expected).abs() > 6 * standard_error).any()

    def test_systematic_epochs_vary_less(self, problem):
        _, losses, gradients = problem
        spread = {}
        for draw in DRAWS:
            rise = sampler(self.n_rows, max_boost=4.0, rise_sampling=draw)
            rise.refresh(losses().detach())
            epochs = torch.stack([gradients[rise.epoch_rows()].mean(0) for _ in range(200)])
            spread[draw] = epochs.std(0).norm().item()
        assert spread["systematic"] < 0.7 * spread["multinomial"]


def test_weights_are_even_until_the_first_refresh():
    rise = sampler(6)
    assert rise.weights.tolist() == [1.0] * 6
    assert rise.weights.dtype == torch.float64
    assert rise.epoch_rows().sort().values.tolist() == list(range(6))


def test_hard_rows_are_drawn_more_often():
    rise = sampler(100, n_difficulty_bins=2, max_boost=3.0)
    rise.refresh(torch.arange(100, dtype=torch.float32))
    rows = torch.cat([rise.epoch_rows() for _ in range(200)])
    counts = rows.bincount(minlength=100).double() / 200
    assert counts[:50].mean().item() == pytest.approx(0.5, abs=0.02)
    assert counts[50:].mean().item() == pytest.approx(1.5, abs=0.02)


def test_no_boost_is_a_plain_shuffle_without_refreshes():
    rise = sampler(50, max_boost=1)
    rise.refresh(torch.arange(50.0))
    for _ in range(5):
        rows = rise.epoch_rows()
        assert rows.dtype == torch.int64
        assert rows.sort().values.tolist() == list(range(50))
    assert not any(rise.needs_refresh(epoch) for epoch in range(100))
    assert not any(sampler(50, n_difficulty_bins=1).needs_refresh(epoch) for epoch in range(100))


def test_refreshes_come_every_k_epochs_and_not_before_the_first():
    rise = sampler(50, refresh_every=3)
    assert [epoch for epoch in range(10) if rise.needs_refresh(epoch)] == [3, 6, 9]


def test_a_nan_loss_counts_as_hardest():
    rise = sampler(4, n_difficulty_bins=4)
    rise.refresh(torch.tensor([1.0, float("nan"), 3.0, 4.0]))
    assert rise.weights.argmax() == 1


@pytest.mark.parametrize("draw", DRAWS)
def test_a_restored_sampler_goes_on_alike(draw):
    first = sampler(30, rise_sampling=draw)
    first.refresh(torch.arange(30.0))
    first.epoch_rows()
    state, generator_state = first.state_dict(), first._generator.get_state()
    assert all(isinstance(value, torch.Tensor) for value in state.values())
    expected = [first.epoch_rows() for _ in range(3)]
    first.refresh(torch.zeros(30))

    second = sampler(30, rise_sampling=draw, seed=99)
    second.load_state_dict(state)
    second._generator.set_state(generator_state)
    for rows in expected:
        assert torch.equal(second.epoch_rows(), rows)


def test_a_state_of_another_table_is_refused():
    with pytest.raises(ModelFileError, match=r"one for each of the 5 rows, got shape \(4,\)"):
        sampler(5).load_state_dict(sampler(4).state_dict())
    with pytest.raises(ModelFileError, match="got none"):
        sampler(5).load_state_dict({})


def test_losses_and_tables_of_the_wrong_size():
    with pytest.raises(InvalidDataError, match="one loss for each of the 5 rows"):
        sampler(5).refresh(torch.zeros(4))
    with pytest.raises(InvalidDataError, match="n_rows must be >= 1, got 0"):
        sampler(0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_difficulty_bins": 0}, "n_difficulty_bins must be an integer >= 1, got 0"),
        ({"max_boost": 0.5}, "max_boost must be finite and >= 1, got 0.5"),
        ({"refresh_every": 0}, "refresh_every must be an integer >= 1, got 0"),
        ({"rise_sampling": "uniform"}, "rise_sampling must be one of .*, got 'uniform'"),
    ],
)
def test_options_outside_their_rules(options, message):
    with pytest.raises(InvalidOptionError, match=message):
        RiseConfig(**options)
