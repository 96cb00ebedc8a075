"""The training loop: train / train_epoch / train_step / evaluate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Generator, Tensor, nn

from tabnsm.columns.large import LARGE_ROWS, row_slices
from tabnsm.errors import TabNSMError
from tabnsm.metrics import near_one, weighted_mae, weighted_rmse
from tabnsm.nn.compiled import CompiledPass
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import predict_rows
from tabnsm.target import TargetModel
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.budget import TimeBudget, now
from tabnsm.training.callbacks import STOPPED
from tabnsm.training.config import TrainingConfig
from tabnsm.training.descent import Descent
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import EpochRecord, History, ValidationScores
from tabnsm.training.objective import Objective
from tabnsm.training.read_ahead import read_ahead
from tabnsm.training.rise import RiseSampler
from tabnsm.training.rows import TrainingData

Report = Callable[[History], bool | None]


class TrainingDivergedError(TabNSMError):
    """Predictions became infinite or undefined."""

    def __init__(self, epoch: int) -> None:
        super().__init__(
            f"The validation score must be finite, but is not in epoch {epoch}. "
            "Lower learning_rate, or look for extreme values in the target."
        )


@dataclass
class TrainingState:
    """All that changes while training; what a checkpoint holds."""

    model: nn.Module
    optimizer: Descent
    average: WeightAverage
    sampler: RiseSampler
    monitor: ValidationMonitor
    generator: Generator
    best_weights: dict[str, Tensor]
    history: History = field(default_factory=History)


@dataclass(frozen=True)
class WholeRows:
    """What training on a part of the rows must know of all of them.

    Parameters
    ----------
    n_rows : int
    bounds : list of (float, float)
        Least and greatest value of each standardised target.
    """

    n_rows: int
    bounds: list[tuple[float, float]]

    @classmethod
    def of(cls, standard: Tensor) -> WholeRows:
        """Of standardised targets, (n, t), NaN where missing."""
        known = [y[~y.isnan()] for y in standard.unbind(1)]
        return cls(len(standard), [(float(y.min()), float(y.max())) for y in known])


class Saves(Protocol):
    """What keeps the state of training after every epoch."""

    def save(self, state: TrainingState) -> None:
        """Keep everything that the next epoch depends on."""


class Trainer:
    """Fit a model to encoded rows, keep the epoch that validates best.

    Parameters
    ----------
    config : TrainingConfig
    objective : Objective
    target : TargetModel
        Fitted on the training targets.
    data : TrainingData
        With the residuals of the target's linear fits in place of targets.
    device : torch.device
    report : callable or None
        Called with the history after every epoch; a true answer ends training.
    budget : TimeBudget or None
        Time that is left; None counts `time_limit` from the start of `train`.
    whole : WholeRows or None
        Where `data` is a part of the rows: what to know of all of them. The mean of their
        weights is then 1 already.
    """

    def __init__(
        self,
        config: TrainingConfig,
        objective: Objective,
        target: TargetModel,
        data: TrainingData,
        device: torch.device,
        report: Report | None = None,
        budget: TimeBudget | None = None,
        whole: WholeRows | None = None,
    ) -> None:
        self.config = config
        self.objective = objective
        self.target = target
        self.data = data
        self.device = device
        self.report = report
        self.budget = budget
        self.standard = torch.from_numpy(target.standardize(data.train_target))  # (n, t)
        self.weight = None
        if data.train_weight is not None:
            weight = mean_one(data.train_weight) if whole is None else data.train_weight
            self.weight = torch.as_tensor(weight, dtype=torch.float32)
        whole = whole or WholeRows.of(self.standard)
        self.bounds = whole.bounds
        self.batch_size = config.resolved_batch_size(whole.n_rows)
        self.autocast = _wants_bfloat16(config.precision, device)
        self.started = now()
        self.evaluate_seconds = 0.0
        self._passes: WeakKeyDictionary[nn.Module, CompiledPass | None] = WeakKeyDictionary()

    def train(self, state: TrainingState, checkpoint: Saves | None = None) -> History:
        """Train until a stop, then put the best epoch's weights into the model.

        Ctrl-C after the first epoch, or a divergence, ends training like a stop: `stop_reason` is
        "interrupted" or "diverged". Before it, nothing is worth keeping and the error goes on to
        the caller.
        """
        past = state.history.seconds
        self.started = now() - past
        if self.budget is None:
            self.budget = TimeBudget(self.config.time_limit)
            self.budget.charge(past)
        reason = state.history.stop_reason
        if reason.startswith("time_limit"):
            reason = self._is_over(state)
        try:
            while not reason:
                self.train_epoch(state)
                state.history.stop_reason = reason = self._is_over(state)
                if checkpoint is not None:
                    checkpoint.save(state)
                if self._report(state.history) and not reason:
                    state.history.stop_reason = reason = STOPPED
        except (KeyboardInterrupt, TrainingDivergedError) as stop:
            if not state.best_weights:
                raise
            interrupted = isinstance(stop, KeyboardInterrupt)
            state.history.stop_reason = "interrupted" if interrupted else "diverged"
        state.model.load_state_dict(state.best_weights)
        state.model.eval()
        return state.history

    def _report(self, history: History) -> bool:
        """Whether to stop after this epoch; what that takes is no time of training."""
        before = now()
        stops = self.report is not None and bool(self.report(history))
        self.started += now() - before
        return stops

    def train_epoch(self, state: TrainingState) -> None:
        """One pass over rows drawn by RISE, then validation."""
        epoch = len(state.history) + 1
        refreshed = state.sampler.needs_refresh(len(state.history))
        # A pass over all training rows that ends beyond the limit would be of no use.
        per_row = self.evaluate_seconds / max(self.data.validation.n_rows, 1)
        refreshed = refreshed and not self._out_of_time(per_row * self.data.train.n_rows)
        if refreshed:
            state.sampler.refresh(self.row_losses(state.model))
        learning_rate = self.config.learning_rate * state.monitor.learning_rate_factor
        for group in state.optimizer.param_groups:
            group["lr"] = learning_rate
        state.model.train()
        losses = []
        with read_ahead(self.data.train, self.epoch_batches(state)) as ahead:
            for rows in ahead:
                losses.append(self.train_step(state, rows))
                if self._out_of_time(self.evaluate_seconds):
                    break
        best_weights = state.best_weights
        with state.average.applied():
            rmse, mae, score = self._timed_evaluate(state.model)
            if not math.isfinite(score):
                raise TrainingDivergedError(epoch)
            if state.monitor.update(score):
                best_weights = {k: v.clone() for k, v in state.model.state_dict().items()}
        seconds = now() - self.started
        record = EpochRecord(
            epoch, self.mean_loss(losses), rmse, learning_rate, seconds, refreshed, mae, score
        )
        # Together and last, so that Ctrl-C finds weights and history of the same epoch.
        state.history.epochs.append(record)
        state.history.best_epoch = state.monitor.best_epoch
        state.best_weights = best_weights

    def epoch_batches(self, state: TrainingState) -> Sequence[Tensor]:
        """Training rows of each step of an epoch."""
        return torch.split(state.sampler.epoch_rows(), self.batch_size)

    def mean_loss(self, losses: Sequence[float]) -> float:
        """Mean over the steps of an epoch."""
        return sum(losses) / len(losses)

    def train_step(self, state: TrainingState, rows: Tensor) -> float:
        """One step of AdamW on the given training rows; the batch's loss."""
        compiled = self._compiled_pass(state.model)
        if compiled is None:
            loss = self.batch_loss(state.model, rows)
            state.optimizer.descend(loss, state.average, self.config.gradient_clip)
        else:
            x, target, weight = self.batch(rows)
            prediction = compiled.forward(x).requires_grad_()
            loss = self.objective.batch_loss(prediction, target, weight)
            (d_prediction,) = torch.autograd.grad(loss, prediction)
            compiled.backward(d_prediction)
            state.optimizer.move(state.average, self.config.gradient_clip)
        return float(loss.detach())

    def _compiled_pass(self, model: nn.Module) -> CompiledPass | None:
        """The passes of a model that need no autograd, if there are such."""
        if model not in self._passes:
            serves = not self.autocast and CompiledPass.serves(model)
            self._passes[model] = CompiledPass(cast("TabNSM", model)) if serves else None
        return self._passes[model]

    def batch(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Features (B, D), standardised targets (B, t) and weights (B,) of some training rows."""
        x = self.data.train.gather(rows).to(self.device)
        target = self.standard[rows].to(self.device)
        weight = None if self.weight is None else self.weight[rows].to(self.device)
        return x, target, weight

    def batch_loss(self, model: nn.Module, rows: Tensor) -> Tensor:
        """Objective of some training rows."""
        return self.loss_of(model, *self.batch(rows))

    def loss_of(self, model: nn.Module, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Objective of encoded rows, (B, D), with standardised targets, (B, t)."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            prediction = model(x)  # (B, t)
        return self.objective.batch_loss(prediction.float(), target, weight)

    def evaluate(self, model: nn.Module) -> ValidationScores:
        """Scores on the validation rows, the one that the best epoch is chosen by among them.

        That one is the `eval_metric` in the target's units, or on the transformed scale where
        the target is transformed, because there the other depends on a few rows alone. Of several
        targets, all scores are means in standard deviations; see `TargetModel.mean_score`.
        """
        target, weight = self.data.validation_target, self.data.validation_weight
        standard = predict_rows(model, self.data.validation, self.device)  # (n, t)
        if not np.isfinite(standard).all():
            # The scaler would turn it into the largest number there is.
            return ValidationScores(math.inf, math.inf, math.inf)
        prediction = self.target.unstandardize(standard)
        uses_rmse = self.config.eval_metric == "rmse"
        if self.target.n_targets > 1:
            rmse = self.target.mean_score(weighted_rmse, target, prediction, weight)
            mae = self.target.mean_score(weighted_mae, target, prediction, weight)
            return ValidationScores(rmse, mae, rmse if uses_rmse else mae)
        rmse = _mean_score(weighted_rmse, target, prediction, weight)
        mae = _mean_score(weighted_mae, target, prediction, weight)
        if not self.target.is_transformed:
            return ValidationScores(rmse, mae, rmse if uses_rmse else mae)
        metric = weighted_rmse if uses_rmse else weighted_mae
        wanted = self.target.standardize(target).astype(np.float64)
        score = _mean_score(metric, wanted, standard.astype(np.float64), weight)
        return ValidationScores(rmse, mae, score)

    def _timed_evaluate(self, model: nn.Module) -> ValidationScores:
        """Evaluate, and keep how long it takes: that time is set apart before a limit."""
        started = now()
        scores = self.evaluate(model)
        self.evaluate_seconds = now() - started
        return scores

    def row_losses(self, model: nn.Module) -> Tensor:
        """Objective of each training row on the fixed grid of the training targets."""
        prediction = torch.from_numpy(predict_rows(model, self.data.train, self.device))
        if len(prediction) <= LARGE_ROWS:
            return self.objective.row_losses(prediction, self.standard, self.bounds)
        losses = [
            self.objective.row_losses(prediction[rows], self.standard[rows], self.bounds)
            for rows in row_slices(len(prediction))
        ]
        return torch.cat(losses)

    def _is_over(self, state: TrainingState) -> str:
        """Why to stop, or an empty string."""
        if state.monitor.should_stop:
            metric = self.config.eval_metric.upper()
            waited = len(state.history) - state.history.best_epoch
            return f"no better validation {metric} for {waited} epochs"
        if len(state.history) >= self.config.max_epochs:
            return f"max_epochs={self.config.max_epochs} reached"
        if self._out_of_time(self.evaluate_seconds) and len(state.history):
            return f"time_limit={self.config.time_limit:g} s reached"
        return ""

    def _out_of_time(self, needed: float = 0.0) -> bool:
        """Whether the time left is not more than the seconds that are needed."""
        return self.budget is not None and self.budget.seconds_left() <= needed


def mean_one(weight: np.ndarray) -> np.ndarray:
    """Weights of mean 1 over all training rows.

    Not within a batch: then a step's expectation is the gradient of the weighted risk.
    """
    near, _ = near_one(weight)
    return np.asarray(near / near.mean())


def _mean_score(
    score: Callable[[np.ndarray, np.ndarray, np.ndarray | None], float],
    target: np.ndarray,
    prediction: np.ndarray,
    weight: np.ndarray | None,
) -> float:
    """Mean over the targets of a score, for targets and predictions of shape (n, t)."""
    pairs = zip(target.T, prediction.T, strict=True)
    return float(np.mean([score(*pair, weight) for pair in pairs]))


def _wants_bfloat16(precision: str, device: torch.device) -> bool:
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"
