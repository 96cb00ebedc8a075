"""Options of the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tabnsm.rules import is_finite, is_integer, require, require_one_of
from tabnsm.training.early_stopping import Patience
from tabnsm.training.history import EvalMetric

Precision = Literal["auto", "float32", "bfloat16"]
MAX_NETWORKS, ONE_NETWORK_CELLS = 3, 4_000_000
BATCH_MULTIPLE, MAX_AUTO_BATCH, AUTO_STEPS_PER_EPOCH = 16, 256, 32
"""Rows share vectors of 16 numbers: the last few of a batch cost as much as a whole vector."""


@dataclass(frozen=True)
class TrainingConfig:
    """How long, how fast and with what precision to train.

    Parameters
    ----------
    n_ensemble : int or "auto", default "auto"
        Networks that are trained and predict together. "auto" is 3 for up to 4 million encoded
        values to train on, and 1 for more.
    max_epochs : int, default 200
    batch_size : int or "auto", default "auto"
        "auto" aims at 32 steps per epoch, with batches of 16 to 256 rows that are multiples of 16.
    learning_rate : float, default 2e-3
    weight_decay : float, default 1e-2
        AdamW's; applied to matrices, not to tokens, biases and norms.
    ema_decay : float, default 0.995
        Share of the running average of the weights that a step keeps. The average is what
        validates and predicts; 0 takes the weights themselves.
    eval_metric : {"rmse", "mae"}, default "rmse"
        What validation watches: it chooses the best epoch, stops training and halves the
        learning rate.
    patience : int or "auto", default "auto"
        Epochs without a better validation score before training stops; "auto" is half as many as
        there were up to the best one, at least 5 and at most 16.
    scheduler_patience : int, default 5
        Epochs without a better validation score before the learning rate is halved.
    gradient_clip : float, default 1.0
        Largest norm of the whole gradient.
    time_limit : float or None, default None
        Seconds from the call of `fit`. A part is set apart for what follows training; when the
        others are over, no further step is begun, and the best epoch so far is kept. Of several
        networks, those that cannot be finished by then are left out, but for the first.
    precision : {"auto", "float32", "bfloat16"}, default "auto"
        Of training; "auto" takes bfloat16 on a GPU that has it, float32 elsewhere.
        Prediction is always float32.
    """

    # NOTE[DIFF]: the paper trains one network.
    n_ensemble: int | Literal["auto"] = "auto"
    max_epochs: int = 200
    batch_size: int | Literal["auto"] = "auto"
    learning_rate: float = 2e-3
    weight_decay: float = 1e-2
    # NOTE[DIFF]: the paper predicts with the weights of one step, which carry its noise.
    ema_decay: float = 0.995
    eval_metric: EvalMetric = "rmse"
    # NOTE[DIFF]: the paper waits a fixed number of epochs.
    patience: Patience = "auto"
    scheduler_patience: int = 5
    gradient_clip: float = 1.0
    time_limit: float | None = None
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        for name in ("max_epochs", "scheduler_patience"):
            value = getattr(self, name)
            require(is_integer(value, 1), f"{name} must be an integer >= 1", value)
        for name in ("n_ensemble", "batch_size", "patience"):
            value = getattr(self, name)
            rule = f'{name} must be "auto" or an integer >= 1'
            require(value == "auto" or is_integer(value, 1), rule, value)
        # Finite, because a saved model and its options are JSON, which has no infinity.
        rate, decay, clip = self.learning_rate, self.weight_decay, self.gradient_clip
        require(is_finite(rate) and rate > 0, "learning_rate must be finite and > 0", rate)
        require(is_finite(decay) and decay >= 0, "weight_decay must be finite and >= 0", decay)
        require(
            is_finite(clip) and clip > 0,
            "gradient_clip must be finite and > 0 (1e30 never clips)",
            clip,
        )
        keep = self.ema_decay
        require(is_finite(keep) and 0 <= keep < 1, "ema_decay must be in [0, 1)", keep)
        limit = self.time_limit
        require(
            limit is None or (is_finite(limit) and limit > 0),
            "time_limit must be None or > 0 seconds and finite (None is no limit)",
            limit,
        )
        require_one_of("eval_metric", self.eval_metric, get_args(EvalMetric))
        require_one_of("precision", self.precision, get_args(Precision))

    def resolved_ensemble(self, n_rows: int, n_features: int) -> int:
        """Networks to train on `n_rows` encoded as `n_features` numbers each.

        Examples
        --------
        >>> [TrainingConfig().resolved_ensemble(n, 30) for n in (1000, 10**5, 10**6)]
        [3, 3, 1]
        """
        if self.n_ensemble != "auto":
            return self.n_ensemble
        return MAX_NETWORKS if n_rows * n_features <= ONE_NETWORK_CELLS else 1

    def resolved_batch_size(self, n_rows: int) -> int:
        """Rows per step for a table of `n_rows`.

        Examples
        --------
        >>> [TrainingConfig().resolved_batch_size(n) for n in (20, 1000, 10**6)]
        [16, 32, 256]
        """
        if self.batch_size != "auto":
            return self.batch_size
        n_vectors = -(-n_rows // (AUTO_STEPS_PER_EPOCH * BATCH_MULTIPLE))
        return min(max(n_vectors, 1) * BATCH_MULTIPLE, MAX_AUTO_BATCH)
