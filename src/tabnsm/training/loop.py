"""The training loop: train / train_epoch / train_step / evaluate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Generator, Tensor, nn

from tabnsm.columns.encoded import EncodedTable
from tabnsm.errors import TabNSMError
from tabnsm.preprocessing.target import TargetScaler
from tabnsm.threads import map_in_threads
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.budget import TimeBudget
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import EpochRecord, History
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler
from tabnsm.training.scores import ValidationScores, near_one, weighted_mae, weighted_rmse

TILE_TOKENS, MIN_TILE, MAX_TILE = 8192, 16, 256
COMPILED_TILE_TOKENS = 2**17  # nothing but tokens is kept for all rows of a tile

Report = Callable[[History], None]


class TrainingDivergedError(TabNSMError):
    """Predictions became infinite or undefined."""

    def __init__(self, epoch: int) -> None:
        super().__init__(
            f"The validation score must be finite, but is not in epoch {epoch}. "
            "Lower learning_rate, or look for extreme values in the target."
        )


@dataclass(frozen=True)
class TrainingData:
    """Encoded rows and targets of both parts of the split.

    Parameters
    ----------
    train, validation : EncodedTable
    train_target, validation_target : ndarray of float64
        In the target's own units.
    train_weight, validation_weight : ndarray of float64 or None
    """

    train: EncodedTable
    train_target: np.ndarray
    train_weight: np.ndarray | None
    validation: EncodedTable
    validation_target: np.ndarray
    validation_weight: np.ndarray | None


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
    scaler : TargetScaler
        Fitted on the training targets.
    data : TrainingData
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
        scaler: TargetScaler,
        data: TrainingData,
        device: torch.device,
        report: Report | None = None,
        budget: TimeBudget | None = None,
    ) -> None:
        self.config = config
        self.objective = objective
        self.scaler = scaler
        self.data = data
        self.device = device
        self.report = report
        self.budget = budget
        self.target = torch.as_tensor(scaler.transform(data.train_target), dtype=torch.float32)
        self.bounds = (float(self.target.min()), float(self.target.max()))
        weight = data.train_weight
        self.weight = None
        if weight is not None:
            # Mean 1 over all rows, not within a batch: then a step's expectation is the gradient
            # of the weighted risk.
            weight, _ = near_one(weight)
            self.weight = torch.as_tensor(weight / weight.mean(), dtype=torch.float32)
        self.batch_size = config.resolved_batch_size(data.train.n_rows)
        self.autocast = _wants_bfloat16(config.precision, device)
        self.started = time.monotonic()
        self.evaluate_seconds = 0.0

    def train(self, state: TrainingState, checkpoint: Checkpoint | None = None) -> History:
        """Train until a stop, then put the best epoch's weights into the model.

        Ctrl-C after the first epoch, or a divergence, ends training like a stop: `stop_reason` is
        "interrupted" or "diverged". Before it, nothing is worth keeping and the error goes on to
        the caller.
        """
        past = state.history.seconds
        self.started = time.monotonic() - past
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
        seconds = time.monotonic() - self.started
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
        target = self.target[rows].to(self.device)  # (B,)
        weight = None if self.weight is None else self.weight[rows].to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            prediction = state.model(x)  # (B,)
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
        tails are transformed, because there the other depends on a few rows alone.
        """
        target, weight = self.data.validation_target, self.data.validation_weight
        standard = predict_rows(model, self.data.validation, self.device)
        if not np.isfinite(standard).all():
            # The scaler would turn it into the largest number there is.
            return ValidationScores(math.inf, math.inf, math.inf)
        prediction = self.scaler.inverse(standard)
        rmse = weighted_rmse(target, prediction, weight)
        mae = weighted_mae(target, prediction, weight)
        uses_rmse = self.config.eval_metric == "rmse"
        if self.scaler.tails is None:
            return ValidationScores(rmse, mae, rmse if uses_rmse else mae)
        metric = weighted_rmse if uses_rmse else weighted_mae
        bent = self.scaler.transform(target).astype(np.float64)
        return ValidationScores(rmse, mae, metric(bent, standard.astype(np.float64), weight))

    def _timed_evaluate(self, model: nn.Module) -> ValidationScores:
        """Evaluate, and keep how long it takes: that time is set apart before a limit."""
        started = time.monotonic()
        scores = self.evaluate(model)
        self.evaluate_seconds = time.monotonic() - started
        return scores

    def row_losses(self, model: nn.Module) -> Tensor:
        """Objective of each training row on the fixed grid of the training targets."""
        prediction = torch.from_numpy(predict_rows(model, self.data.train, self.device))
        return self.objective.row_losses(prediction, self.target, self.bounds)

    def _is_over(self, state: TrainingState) -> str:
        """Why to stop, or an empty string."""
        if state.monitor.should_stop:
            metric = self.config.eval_metric.upper()
            return f"no better validation {metric} for {self.config.patience} epochs"
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


def tile_rows(n_features: int, most_tokens: int = TILE_TOKENS) -> int:
    """Rows per forward pass outside training where the batch may change a row's bits.

    As many as the cache likes, by width alone. Tiles are always filled up, because matrix products
    of other shapes may round differently: a row's prediction must not depend on its neighbours.

    Examples
    --------
    >>> [tile_rows(n) for n in (12, 100, 400, 16384)]
    [256, 64, 16, 16]
    """
    tile = MAX_TILE
    while tile > MIN_TILE and tile * n_features > most_tokens:
        tile //= 2
    return tile


def predict_rows(model: nn.Module, table: EncodedTable, device: torch.device) -> np.ndarray:
    """Standardised predictions of all rows in float32, in tiles of fixed size.

    Returns
    -------
    ndarray of float32, shape (n_rows,)
    """
    was_training = model.training
    model.eval()
    predictions = np.empty(table.n_rows, dtype=np.float32)
    alone = getattr(model, "rows_are_independent", False)
    size = tile_rows(table.n_features, COMPILED_TILE_TOKENS if alone else TILE_TOKENS)

    @torch.inference_mode()  # holds for the thread that enters it
    def predict_tile(start: int) -> None:
        stop = min(start + size, table.n_rows)
        rows = torch.arange(start, stop if alone else start + size).clamp_(max=stop - 1)
        tile = model(table.gather(rows).to(device)).float().cpu().numpy()  # (size,)
        predictions[start:stop] = tile[: stop - start]

    starts = range(0, table.n_rows, size)
    if len(starts) > 1 and device.type == "cpu":
        map_in_threads(predict_tile, starts)
    else:
        for start in starts:
            predict_tile(start)
    model.train(was_training)
    return predictions


def _wants_bfloat16(precision: str, device: torch.device) -> bool:
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"
