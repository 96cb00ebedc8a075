"""One training loop for all networks on arrays, with TabNSM's batches and early stopping."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tabnsm.errors import InvalidDataError
from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm_bench.baselines.common import (
    MAX_EPOCHS,
    PATIENCE,
    SCHEDULER_PATIENCE,
    Columns,
    Curve,
    TargetScale,
    describe,
    rmse,
    take_options,
    torch_threads,
)
from tabnsm_bench.protocol import Prepared

# Rows per forward pass in prediction; wide tables on attention need them to be few.
_TILE_CELLS, _MAX_TILE = 2**16, 4096
# A row costs about a third as much to predict as to learn from.
_PREDICT_SHARE = 1 / 3
_OF_THE_RUN = ("time_limit", "precision", "eval_metric")
_TRAINING = {k: v for k, v in asdict(TrainingConfig()).items() if k not in _OF_THE_RUN}

Build = Callable[[Columns, dict[str, Any]], nn.Module]


@dataclass
class Fitted:
    """Outcome of a training run.

    Parameters
    ----------
    curve : Curve
        Validation RMSE after each epoch, in units of the standardised target.
    best_epoch : int
        Epoch whose weights the network has, from 1.
    stop_reason : str
        "patience", "max_epochs" or "time_limit".
    notes : list of str
        Sentences on what was cut short.
    """

    curve: Curve = field(default_factory=Curve)
    best_epoch: int = 0
    stop_reason: str = "max_epochs"
    notes: list[str] = field(default_factory=list)


class NetworkMethod:
    """A network on arrays as a method.

    The network takes numbers and codes and gives one prediction per row, or several that are
    averaged; each of them is trained by itself.

    Parameters
    ----------
    name, package : str
        Of the baseline, and of who provides its network.
    build : callable
        From columns and options to a network.
    options : mapping
        Options of the network with their defaults.
    training : mapping
        What its training has that differs from the defaults, such as its learning rate.
    given : mapping
        Options, of the network or of its training, that are to be changed.
    """

    takes_frames = False

    def __init__(
        self,
        name: str,
        package: str,
        build: Build,
        options: Mapping[str, Any],
        training: Mapping[str, Any],
        given: Mapping[str, Any],
    ) -> None:
        self.package = package
        self.build = build
        own = {
            "max_epochs": MAX_EPOCHS,
            "patience": PATIENCE,
            "scheduler_patience": SCHEDULER_PATIENCE,
            "learning_rate": 1e-3,
            "weight_decay": 1e-4,
        }
        chosen = take_options(name, {**options, **_TRAINING, **own, **training}, given)
        self.options = {k: v for k, v in chosen.items() if k in options}
        self.training = {k: v for k, v in chosen.items() if k not in options}
        TrainingConfig(**self.training)  # complain now and not after the table was encoded

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        self.columns = Columns(data.category_sizes)
        self.scale = TargetScale.of(data.train.y)
        self.n_threads = n_threads
        config = TrainingConfig(**self.training, time_limit=time_limit)
        with torch_threads(n_threads), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            started = time.perf_counter()
            self.network = self.make_network(data, config)
            if time_limit is not None:
                left = time_limit - (time.perf_counter() - started)
                config = replace(config, time_limit=max(left, 1e-3))
            fitted = train_network(self.network, data, self.columns, self.scale, config)
        curve = fitted.curve
        curve.validation_rmse = [value * self.scale.std for value in curve.validation_rmse]
        return describe(
            self.package,
            {**self.options, **self.training},
            rows_per_step=config.resolved_batch_size(len(data.train.y)),
            n_parameters=sum(p.numel() for p in self.network.parameters()),
            epochs=len(curve.seconds),
            best_epoch=fitted.best_epoch,
            stop_reason=fitted.stop_reason,
            history=curve.to_dict(),
            notes=fitted.notes,
        )

    def make_network(self, data: Prepared, config: TrainingConfig) -> nn.Module:
        """The network with its first weights; only some look at the training rows for it."""
        return self.build(self.columns, self.options)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads):
            return self.scale.undo(predict_network(self.network, *as_tensors(self.columns, x)))


def train_network(
    network: nn.Module,
    data: Prepared,
    columns: Columns,
    scale: TargetScale,
    config: TrainingConfig,
) -> Fitted:
    """Train with AdamW on squared error, and leave the network with the best epoch's weights.

    Parameters
    ----------
    network : nn.Module
        Called with numbers and codes.
    data : Prepared
        Its training and validation rows are used.
    columns : Columns
        Which features are codes.
    scale : TargetScale
        Scale of the training targets.
    config : TrainingConfig
        How long and how fast; its precision is always float32 here.

    Returns
    -------
    Fitted

    Raises
    ------
    InvalidDataError
        If the training diverged before its first validation.
    """
    numbers, codes = as_tensors(columns, data.train.x)
    target = torch.from_numpy(scale.apply(data.train.y).astype(np.float32))
    held_out = as_tensors(columns, data.validation.x)
    held_out_target = scale.apply(data.validation.y)
    optimizer = make_optimizer(network, config)
    monitor = ValidationMonitor(config.patience, config.scheduler_patience)
    batch_size = config.resolved_batch_size(len(target))
    fitted, best = Fitted(), None
    pace = Pace(config.time_limit, fitted.curve, len(held_out_target))
    for epoch in range(1, config.max_epochs + 1):
        network.train()
        for rows in batches(len(target), batch_size):
            if pace.must_stop():
                break
            train_step(network, optimizer, numbers[rows], codes[rows], target[rows], config)
            pace.learnt(len(rows))
        error = rmse(held_out_target, predict_network(network, *held_out))
        fitted.curve.add(error)
        if monitor.update(error):
            best, fitted.best_epoch = copy.deepcopy(network.state_dict()), epoch
        if pace.must_stop():
            fitted.stop_reason = "time_limit"
            fitted.notes.append(f"stopped by the time limit in epoch {epoch}")
            break
        if monitor.should_stop:
            fitted.stop_reason = "patience"
            break
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * monitor.learning_rate_factor
    if best is None:
        raise InvalidDataError(
            "The training diverged: its validation RMSE was never a finite number. "
            "Try a smaller learning_rate."
        )
    network.load_state_dict(best)
    return fitted


class Pace:
    """When to stop, so that one more validation still fits into the time limit.

    Parameters
    ----------
    time_limit : float or None
        Seconds since the start of the curve.
    curve : Curve
        Has the clock.
    n_validation : int
        Rows to predict in a validation.
    """

    def __init__(self, time_limit: float | None, curve: Curve, n_validation: int) -> None:
        self.time_limit = time_limit
        self.curve = curve
        self.n_validation = n_validation
        self.n_rows = 0
        self.seconds = 0.0
        self.last = time.perf_counter()

    def learnt(self, n_rows: int) -> None:
        """So many more rows were learnt from since `must_stop` was asked."""
        self.seconds += time.perf_counter() - self.last
        self.n_rows += n_rows

    def must_stop(self) -> bool:
        """Whether no further step may begin."""
        self.last = time.perf_counter()
        if self.time_limit is None or not self.n_rows:
            return False
        per_row = _PREDICT_SHARE * self.seconds / self.n_rows
        return self.curve.elapsed + per_row * self.n_validation > self.time_limit


def train_step(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    numbers: Tensor,
    codes: Tensor,
    target: Tensor,
    config: TrainingConfig,
) -> None:
    """One step on one batch; a network with an ``extra_loss(target)`` adds it to the squared error.

    Shape
    -----
    numbers : (B, n_numbers)
    codes : (B, n_categories)
    target : (B,)
    """
    output = network(numbers, codes)  # (B,) or (B, k)
    wanted = target if output.ndim == 1 else target[:, None]
    loss = ((output - wanted) ** 2).mean()
    if (extra_loss := getattr(_innermost(network), "extra_loss", None)) is not None:
        loss = loss + extra_loss(target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip)
    optimizer.step()


def _innermost(network: nn.Module) -> nn.Module:
    """The network inside a wrapper such as `Flat`."""
    inner = getattr(network, "network", network)
    return inner if isinstance(inner, nn.Module) else network


def predict_network(network: nn.Module, numbers: Tensor, codes: Tensor) -> NDArray[np.float64]:
    """Prediction of each row, in units of the standardised target.

    Shape
    -----
    numbers : (n, n_numbers)
    codes : (n, n_categories)
    returned : (n,)
    """
    width = max(1, numbers.shape[1] + codes.shape[1])
    tile = max(16, min(_MAX_TILE, _TILE_CELLS // width))
    network.eval()
    parts = []
    with torch.inference_mode():
        for start in range(0, len(numbers), tile):
            output = network(numbers[start : start + tile], codes[start : start + tile])
            parts.append(output if output.ndim == 1 else output.mean(dim=1))
    return torch.cat(parts).numpy().astype(np.float64)


def as_tensors(columns: Columns, x: NDArray[np.float32]) -> tuple[Tensor, Tensor]:
    """Numbers and codes of an array.

    Shape
    -----
    x : (n, D)
    """
    numbers, codes = columns.split(x)
    return torch.from_numpy(np.ascontiguousarray(numbers)), torch.from_numpy(codes)


def batches(n_rows: int, batch_size: int) -> tuple[Tensor, ...]:
    """Shuffled row numbers; a last batch of a single row, which has no variance, is left out.

    Examples
    --------
    >>> [len(rows) for rows in batches(7, 3)]
    [3, 3]
    """
    parts: tuple[Tensor, ...] = torch.split(torch.randperm(n_rows), batch_size)
    return parts[:-1] if len(parts) > 1 and len(parts[-1]) == 1 else parts


def make_optimizer(network: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW that decays weights, but not biases, norms and embeddings."""
    free = {
        id(parameter)
        for module in network.modules()
        for name, parameter in module.named_parameters(recurse=False)
        if parameter.ndim < 2 or "bias" in name or "Embedding" in type(module).__name__
    }
    groups: list[dict[str, Any]] = [
        {"params": [p for p in network.parameters() if id(p) not in free]},
        {"params": [p for p in network.parameters() if id(p) in free], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, weight_decay=config.weight_decay)
