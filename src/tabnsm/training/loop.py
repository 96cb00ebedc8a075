"""The training loop: train / train_epoch / train_step / evaluate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Generator, Tensor, nn

from tabnsm.errors import TabNSMError
from tabnsm.metrics import near_one, weighted_mae, weighted_rmse
from tabnsm.prediction import predict_rows
from tabnsm.target import TargetModel
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.budget import TimeBudget, now
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import EpochRecord, History, ValidationScores
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler
from tabnsm.training.rows import TrainingData

Report = Callable[[History], None]


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
    optimizer: torch.optim.Optimizer
    average: WeightAverage
    sampler: RiseSampler
    monitor: ValidationMonitor
    generator: Generator
    best_weights: dict[str, Tensor]
    history: History = field(default_factory=History)


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
        Called with the history after every epoch.
    budget : TimeBudget or None
        Time that is left; None counts `time_limit` from the start of `train`.
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
    ) -> None:
        self.config = config
        self.objective = objective
        self.target = target
        self.data = data
        self.device = device
        self.report = report
        self.budget = budget
        self.standard = torch.from_numpy(target.standardize(data.train_target))  # (n, t)
        known = [y[~y.isnan()] for y in self.standard.unbind(1)]
        self.bounds = [(float(y.min()), float(y.max())) for y in known]
        weight = data.train_weight
        self.weight = None
        if weight is not None:
            # Mean 1 over all rows, not within a batch: then a step's expectation is the gradient
            # of the weighted risk.
            weight, _ = near_one(weight)
            self.weight = torch.as_tensor(weight / weight.mean(), dtype=torch.float32)
        self.batch_size = config.resolved_batch_size(data.train.n_rows)
        self.autocast = _wants_bfloat16(config.precision, device)
        self.started = now()
        self.evaluate_seconds = 0.0

    def train(self, state: TrainingState, checkpoint: Checkpoint | None = None) -> History:
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
                if self.report is not None:
                    self.report(state.history)
        except (KeyboardInterrupt, TrainingDivergedError) as stop:
            if not state.best_weights:
                raise
            interrupted = isinstance(stop, KeyboardInterrupt)
            state.history.stop_reason = "interrupted" if interrupted else "diverged"
        state.model.load_state_dict(state.best_weights)
        state.model.eval()
        return state.history

    def train_epoch(self, state: TrainingState) -> None:
        """One pass over rows drawn by RISE, then validation."""
        epoch = len(state.history) + 1
        refreshed = state.sampler.needs_refresh(len(state.history))
        # A pass over all training rows that ends beyond the limit would be of no use.
        per_row = self.evaluate_seconds / self.data.validation.n_rows
        refreshed = refreshed and not self._out_of_time(per_row * self.data.train.n_rows)
        if refreshed:
            state.sampler.refresh(self.row_losses(state.model))
        learning_rate = self.config.learning_rate * state.monitor.learning_rate_factor
        for group in state.optimizer.param_groups:
            group["lr"] = learning_rate
        state.model.train()
        batches = torch.split(state.sampler.epoch_rows(), self.batch_size)
        total = 0.0
        done = 0
        for rows in batches:
            total += self.train_step(state, rows)
            done += 1
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
            epoch, total / done, rmse, learning_rate, seconds, refreshed, mae, score
        )
        # Together and last, so that Ctrl-C finds weights and history of the same epoch.
        state.history.epochs.append(record)
        state.history.best_epoch = state.monitor.best_epoch
        state.best_weights = best_weights

    def train_step(self, state: TrainingState, rows: Tensor) -> float:
        """One step of AdamW on the given training rows; the batch's loss."""
        x = self.data.train.gather(rows).to(self.device)  # (B, D)
        target = self.standard[rows].to(self.device)  # (B, t)
        weight = None if self.weight is None else self.weight[rows].to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            prediction = state.model(x)  # (B, t)
        loss = self.objective.batch_loss(prediction.float(), target, weight)
        state.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        weights = [weight for group in state.optimizer.param_groups for weight in group["params"]]
        nn.utils.clip_grad_norm_(weights, self.config.gradient_clip)
        state.optimizer.step()
        state.average.update()
        return float(loss.detach())

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
        return self.objective.row_losses(prediction, self.standard, self.bounds)

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


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW that decays matrices, but not tokens, biases, norms and blending scalars."""
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim >= 2 and not name.startswith("tokenizer.")
        (decayed if is_matrix else free).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


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
