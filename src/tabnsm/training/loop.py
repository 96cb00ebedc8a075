"""The training loop: train / train_epoch / train_step / evaluate."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Generator, Tensor, nn

from tabnsm.errors import TabNSMError, TabNSMWarning
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.target import TargetScaler
from tabnsm.threads import map_in_threads
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.checkpoint import Checkpoint
from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.history import EpochRecord, History
from tabnsm.training.objective import Objective
from tabnsm.training.rise import RiseSampler

TILE_TOKENS, SMALLEST_TILE, LARGEST_TILE = 8192, 16, 256
COMPILED_TILE_TOKENS = 2**17  # nothing but tokens is kept for all rows of a tile

_SAID = {"interrupted": "was interrupted", "diverged": "left the finite numbers"}

Report = Callable[[History], None]


class TrainingDivergedError(TabNSMError):
    """Predictions became infinite or undefined."""

    def __init__(self, epoch: int) -> None:
        super().__init__(
            f"Validation RMSE must be finite, but is not in epoch {epoch}. "
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
    """

    def __init__(
        self,
        config: TrainingConfig,
        objective: Objective,
        scaler: TargetScaler,
        data: TrainingData,
        device: torch.device,
        report: Report | None = None,
    ) -> None:
        self.config = config
        self.objective = objective
        self.scaler = scaler
        self.data = data
        self.device = device
        self.report = report
        self.target = torch.as_tensor(scaler.transform(data.train_target), dtype=torch.float32)
        self.bounds = (float(self.target.min()), float(self.target.max()))
        weight = data.train_weight
        self.weight = None
        if weight is not None:
            # Mean 1 over all rows, not within a batch: then a step's expectation is the gradient
            # of the weighted risk.
            weight, _ = _near_one(weight)
            self.weight = torch.as_tensor(weight / weight.mean(), dtype=torch.float32)
        self.batch_size = config.resolved_batch_size(data.train.n_rows)
        self.autocast = _wants_bfloat16(config.precision, device)
        self.started = time.monotonic()

    def train(self, state: TrainingState, checkpoint: Checkpoint | None = None) -> History:
        """Train until a stop, then put the best epoch's weights into the model.

        Ctrl-C after the first epoch ends training like a stop; before it, nothing is worth
        keeping and KeyboardInterrupt goes on to the caller.
        """
        past = state.history.epochs[-1].seconds if state.history.epochs else 0.0
        self.started = time.monotonic() - past
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
            reason = "interrupted" if isinstance(stop, KeyboardInterrupt) else "diverged"
            state.history.stop_reason = reason
            warnings.warn(
                f"Training {_SAID[reason]} in epoch {len(state.history) + 1}; the model keeps "
                f"the weights of epoch {state.history.best_epoch}, the best so far.",
                TabNSMWarning,
                stacklevel=2,
            )
        state.model.load_state_dict(state.best_weights)
        state.model.eval()
        return state.history

    def train_epoch(self, state: TrainingState) -> None:
        """One pass over rows drawn by RISE, then validation."""
        epoch = len(state.history) + 1
        refreshed = state.sampler.needs_refresh(len(state.history))
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
            if self._out_of_time():
                break
        best_weights = state.best_weights
        with state.average.applied():
            rmse, score = self.evaluate(state.model)
            if not math.isfinite(score):
                raise TrainingDivergedError(epoch)
            if state.monitor.update(score):
                best_weights = {k: v.clone() for k, v in state.model.state_dict().items()}
        seconds = time.monotonic() - self.started
        record = EpochRecord(epoch, total / done, rmse, learning_rate, seconds, refreshed)
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

    def evaluate(self, model: nn.Module) -> tuple[float, float]:
        """RMSE on the validation rows in the target's units, and what the best epoch is told by.

        The two are the same unless tails are bent: then the score is the RMSE on the bent scale,
        because the other depends on a few rows alone.
        """
        target, weight = self.data.validation_target, self.data.validation_weight
        standard = predict_rows(model, self.data.validation, self.device)
        if not np.isfinite(standard).all():
            return math.inf, math.inf  # the scaler would turn it into the largest number there is
        rmse = weighted_rmse(target, self.scaler.inverse(standard), weight)
        if self.scaler.tails is None:
            return rmse, rmse
        bent = self.scaler.transform(target).astype(np.float64)
        return rmse, weighted_rmse(bent, standard.astype(np.float64), weight)

    def row_losses(self, model: nn.Module) -> Tensor:
        """Objective of each training row on the fixed grid of the training targets."""
        prediction = torch.from_numpy(predict_rows(model, self.data.train, self.device))
        return self.objective.row_losses(prediction, self.target, self.bounds)

    def _is_over(self, state: TrainingState) -> str:
        """Why to stop, or an empty string."""
        if state.monitor.should_stop:
            return f"no better validation RMSE for {self.config.patience} epochs"
        if len(state.history) >= self.config.max_epochs:
            return f"max_epochs={self.config.max_epochs} reached"
        if self._out_of_time() and len(state.history):
            return f"time_limit={self.config.time_limit:g} s reached"
        return ""

    def _out_of_time(self) -> bool:
        limit = self.config.time_limit
        return limit is not None and time.monotonic() - self.started >= limit


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
    tile = LARGEST_TILE
    while tile > SMALLEST_TILE and tile * n_features > most_tokens:
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


def weighted_rmse(target: np.ndarray, prediction: np.ndarray, weight: np.ndarray | None) -> float:
    """Root of the (weighted) mean squared error, also where squares leave float64.

    Examples
    --------
    >>> weighted_rmse(np.array([0.0, 0.0]), np.array([1.0, 3.0]), np.array([1.0, 0.0]))
    1.0
    >>> weighted_rmse(np.array([0.0]), np.array([3e200]), None)
    3e+200
    >>> weighted_rmse(np.array([1.7e308]), np.array([-1.7e308]), None)
    1.7976931348623157e+308
    """
    error, exponent = _near_one(np.ldexp(target, -1) - np.ldexp(prediction, -1))
    if weight is not None:
        weight, _ = _near_one(weight)
    with np.errstate(over="ignore"):
        rmse = float(np.ldexp(np.sqrt(np.average(error**2, weights=weight)), exponent + 1))
    # Two finite numbers may lie further apart than there are numbers; that is no divergence.
    return min(rmse, float(np.finfo(np.float64).max))


def _near_one(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Values over a power of two, which costs no bit and leaves them below 1; its exponent."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    return np.ldexp(values, -exponent), exponent


def _wants_bfloat16(precision: str, device: torch.device) -> bool:
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.is_bf16_supported()
    return precision == "bfloat16"
