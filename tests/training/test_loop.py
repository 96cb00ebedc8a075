"""The loop's own promises: schedule, stopping, clipping, tiles, divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tabnsm.columns.encoded import EncodedTable
from tabnsm.errors import InvalidOptionError
from tabnsm.nn import TabNSM
from tabnsm.nn.compiled import CompiledPass
from tabnsm.target import TargetConfig, TargetModel
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.config import TrainingConfig
from tabnsm.training.descent import make_optimizer
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import ValidationScores
from tabnsm.training.loop import Trainer, TrainingDivergedError, TrainingState
from tabnsm.training.objective import Objective, ObjectiveConfig
from tabnsm.training.rise import RiseConfig, RiseSampler
from tabnsm.training.rows import TrainingData

CPU = torch.device("cpu")


def encoded(n_rows: int, seed: int) -> EncodedTable:
    return EncodedTable(torch.randn(n_rows, 5, generator=torch.Generator().manual_seed(seed)))


def make(
    config: TrainingConfig,
    rise: RiseConfig | None = None,
    report: Any = None,
    d_token: int = 8,
) -> tuple[Trainer, TrainingState]:
    train, validation = encoded(150, 0), encoded(40, 1)

    def target(table: EncodedTable) -> np.ndarray:
        return (3 + 10 * table.dense[:, :1] * table.dense[:, 1:2]).double().numpy()

    data = TrainingData(train, target(train), None, validation, target(validation), None)
    generator = torch.Generator().manual_seed(0)
    model = TabNSM(5, d_token=d_token, head_width=16, generator=generator)
    state = TrainingState(
        model,
        make_optimizer(model, config),
        WeightAverage(model, config.ema_decay),
        RiseSampler(150, rise or RiseConfig(), generator),
        ValidationMonitor(config.patience, config.scheduler_patience),
        generator,
        {},
    )
    model_of_target = TargetModel.fit(data.train_target, None, TargetConfig())
    objective = Objective(ObjectiveConfig())
    return Trainer(config, objective, model_of_target, data, CPU, report), state


def test_the_best_epoch_is_restored() -> None:
    trainer, state = make(TrainingConfig(max_epochs=12, learning_rate=2e-2))
    history = trainer.train(state)
    assert trainer.evaluate(state.model)[0] == history.best.validation_rmse
    assert history.best.validation_rmse == min(e.validation_rmse for e in history)
    assert history.stop_reason == "max_epochs=12 reached"
    assert not state.model.training


@pytest.mark.slow
def test_training_learns() -> None:
    trainer, state = make(TrainingConfig(max_epochs=40, learning_rate=5e-3))
    history = trainer.train(state)
    assert history.best.validation_rmse < 0.5 * history[0].validation_rmse


def test_stopping_and_schedule_follow_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, state = make(TrainingConfig(max_epochs=50, patience=6, scheduler_patience=2))
    scores = iter([3.0, 2.0] + [2.5] * 40)
    monkeypatch.setattr(Trainer, "evaluate", lambda self, model: (next(scores),) * 3)
    history = trainer.train(state)
    assert len(history) == 8
    assert history.best_epoch == 2
    assert history.stop_reason == "no better validation RMSE for 6 epochs"
    rates = [e.learning_rate for e in history]
    assert rates == pytest.approx([2e-3] * 4 + [1e-3] * 2 + [5e-4] * 2)


def test_the_eval_metric_is_what_validation_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [(3.0, 1.0), (2.0, 2.0), (1.0, 3.0), (4.0, 4.0)]
    for metric, best, reason in (("rmse", 3, "max_epochs"), ("mae", 1, "no better validation MAE")):
        config = TrainingConfig(max_epochs=4, patience=3, eval_metric=metric)  # type: ignore
        trainer, state = make(config)
        true = trainer.evaluate(state.model)
        assert true.score == getattr(true, metric)
        reported = iter([ValidationScores(*each, each[metric == "mae"]) for each in scores])
        with monkeypatch.context() as patch:
            patch.setattr(
                Trainer, "evaluate", lambda self, model, reported=reported: next(reported)
            )
            history = trainer.train(state)
        assert history.best_epoch == best
        assert history.stop_reason.startswith(reason)
        assert [record.validation_mae for record in history] == [1, 2, 3, 4]
        assert [record.score for record in history] == [each[metric == "mae"] for each in scores]


class Seconds:
    """A budget that says what it is told to."""

    def __init__(self, left: float) -> None:
        self.left = left

    def seconds_left(self) -> float:
        return self.left


def test_rows_are_not_measured_where_that_takes_longer_than_is_left() -> None:
    for left, expected in ((5.0, True), (0.5, False)):
        trainer, state = make(TrainingConfig(), RiseConfig(refresh_every=1))
        trainer.budget = Seconds(left)  # type: ignore[assignment]
        trainer.train_epoch(state)
        assert trainer.evaluate_seconds > 0
        trainer.evaluate_seconds = 40 / 150  # a second for the training rows
        trainer.train_epoch(state)
        assert state.history[1].refreshed is expected


def test_time_to_validate_is_set_apart() -> None:
    trainer, state = make(TrainingConfig(time_limit=9.0))
    trainer.budget, trainer.evaluate_seconds = Seconds(1.0), 2.0  # type: ignore[assignment]
    trainer.train_epoch(state)
    assert state.average.n_steps == 1
    trainer.evaluate_seconds = 0.5
    trainer.train_epoch(state)
    assert state.average.n_steps > 2
    trainer.evaluate_seconds = 2.0
    assert trainer._is_over(state) == "time_limit=9 s reached"


def test_a_limit_that_is_over_leaves_one_step() -> None:
    trainer, state = make(TrainingConfig(time_limit=9.0))
    trainer.budget = Seconds(0.0)  # type: ignore[assignment]
    assert trainer.train(state).stop_reason == "time_limit=9 s reached"
    assert len(state.history) == 1
    assert state.average.n_steps == 1


def test_rise_refreshes_on_schedule() -> None:
    trainer, state = make(TrainingConfig(max_epochs=7), RiseConfig(refresh_every=3))
    history = trainer.train(state)
    assert [e.refreshed for e in history] == [False] * 3 + [True] + [False] * 2 + [True]
    assert state.sampler.weights.max() > 1
    trainer, state = make(TrainingConfig(max_epochs=4), RiseConfig(max_boost=1.0))
    assert not any(e.refreshed for e in trainer.train(state))


def test_gradients_are_clipped() -> None:
    trainer, state = make(TrainingConfig(gradient_clip=1e-3))
    for _ in range(3):
        trainer.train_step(state, torch.arange(16))
    means = [found["exp_avg"] for found in state.optimizer.state.values()]
    norm = torch.sqrt(sum(mean.square().sum() for mean in means))  # type: ignore[arg-type]
    assert 1e-5 < float(norm) <= 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_without_autograd_have_the_same_bits(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for serves in (CompiledPass.serves, lambda _: False):
        monkeypatch.setattr(CompiledPass, "serves", staticmethod(serves))
        trainer, state = make(TrainingConfig(max_epochs=3), d_token=16)
        if weighted:
            trainer.weight = torch.linspace(0.5, 1.5, 150)
        history = trainer.train(state)
        losses = [epoch.train_loss for epoch in history]
        found.append((losses, [weight.detach().clone() for weight in state.model.parameters()]))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(a, b) for a, b in zip(found[0][1], found[1][1], strict=True))


def test_divergence_keeps_the_best_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, state = make(TrainingConfig(max_epochs=9))
    scores = iter([3.0, 2.0, float("nan")])
    monkeypatch.setattr(Trainer, "evaluate", lambda self, model: (next(scores),) * 3)
    history = trainer.train(state)
    assert (history.stop_reason, history.best_epoch) == ("diverged", 2)
    trainer, state = make(TrainingConfig())
    monkeypatch.setattr(Trainer, "evaluate", lambda self, model: (np.inf,) * 3)
    with pytest.raises(TrainingDivergedError, match="Lower learning_rate"):
        trainer.train(state)


def test_infinite_predictions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, state = make(TrainingConfig())
    with torch.no_grad():
        state.model.head.dec2.bias.fill_(torch.inf)  # type: ignore[union-attr]
    assert trainer.evaluate(state.model) == (np.inf,) * 3


def test_an_interrupt_at_the_end_of_the_first_epoch_leaves_no_half_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    trainer, state = make(TrainingConfig(max_epochs=3))
    monkeypatch.setattr("tabnsm.training.loop.EpochRecord", interrupt)
    with pytest.raises(KeyboardInterrupt):
        trainer.train(state)
    assert not state.best_weights


def test_huge_weights_are_weights() -> None:
    trainer, _ = make(TrainingConfig())
    data = trainer.data
    weights = []
    for unit in (1.0, 2.0**1020, 2.0**-1020):
        weight = unit * np.linspace(1, 9, 150)
        weighted = TrainingData(
            data.train, data.train_target, weight, data.validation, data.validation_target, None
        )
        again = Trainer(trainer.config, trainer.objective, trainer.target, weighted, CPU)
        assert again.weight is not None
        weights.append(again.weight)
    assert torch.equal(weights[0], weights[1])
    assert torch.equal(weights[0], weights[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": float("inf")}, "learning_rate must be finite and > 0, got inf"),
        ({"learning_rate": "fast"}, "learning_rate must be finite and > 0, got 'fast'"),
        ({"weight_decay": float("nan")}, "weight_decay must be finite and >= 0, got nan"),
        ({"gradient_clip": float("inf")}, "1e30 never clips"),
        ({"gradient_clip": None}, "gradient_clip must be finite"),
        ({"time_limit": float("inf")}, "None is no limit"),
        ({"time_limit": True}, "time_limit must be None or > 0 seconds"),
        ({"eval_metric": "mse"}, r"eval_metric must be one of \('rmse', 'mae'\), got 'mse'"),
        ({"eval_metric": None}, "eval_metric must be one of"),
    ],
)
def test_numbers_that_no_file_can_hold_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        TrainingConfig(**options)


def test_report_is_called_every_epoch() -> None:
    seen: list[int] = []
    trainer, state = make(TrainingConfig(max_epochs=3), report=lambda h: seen.append(len(h)))
    trainer.train(state)
    assert seen == [1, 2, 3]


def test_weights_are_normalised_over_all_rows() -> None:
    trainer, state = make(TrainingConfig())
    weight = np.linspace(1, 9, 150)
    data = trainer.data
    weighted = TrainingData(
        data.train, data.train_target, weight, data.validation, data.validation_target, None
    )
    trainer = Trainer(trainer.config, trainer.objective, trainer.target, weighted, CPU)
    assert trainer.weight is not None
    assert float(trainer.weight.mean()) == pytest.approx(1.0)
    assert np.isfinite(trainer.train_step(state, torch.arange(16)))
