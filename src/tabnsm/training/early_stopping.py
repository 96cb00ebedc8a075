"""ValidationMonitor: best epoch, learning-rate schedule and early stopping in one counter."""

from __future__ import annotations

import math
from typing import Any, Literal

LEARNING_RATE_FACTOR = 0.5
MIN_PATIENCE, MAX_PATIENCE = 5, 16
Patience = int | Literal["auto"]


def epochs_to_wait(patience: Patience, best_epoch: int) -> int:
    """Epochs without a new best before training stops.

    A network that overfits after a few epochs does not improve again; one that has learned for many
    may rest and go on. So "auto" waits half as many epochs as there were up to the best one, at
    least 5 and at most 16.

    Examples
    --------
    >>> [epochs_to_wait("auto", best) for best in (3, 20, 60)], epochs_to_wait(6, 60)
    ([5, 10, 16], 6)
    """
    if patience == "auto":
        return min(max(best_epoch // 2, MIN_PATIENCE), MAX_PATIENCE)
    return patience


class ValidationMonitor:
    """Watch a validation score that should fall.

    Parameters
    ----------
    patience : int or "auto"
        Epochs without a new best before `should_stop`; see `epochs_to_wait`.
    scheduler_patience : int
        Epochs without a new best before the learning rate is halved, and again each time.

    Examples
    --------
    >>> monitor = ValidationMonitor(patience=3, scheduler_patience=2)
    >>> [monitor.update(score) for score in (2.0, 1.0, 1.5, 1.2)]
    [True, True, False, False]
    >>> monitor.learning_rate_factor, monitor.should_stop, monitor.best_epoch
    (0.5, False, 2)
    """

    def __init__(self, patience: Patience, scheduler_patience: int) -> None:
        self.patience = patience
        self.scheduler_patience = scheduler_patience
        self.best_score = math.inf
        self.best_epoch = 0
        self.epoch = 0
        self.learning_rate_factor = 1.0

    def update(self, score: float) -> bool:
        """Take the score of one more epoch; True if it is the best so far."""
        self.epoch += 1
        if score < self.best_score:
            self.best_score, self.best_epoch = score, self.epoch
            return True
        if (self.epoch - self.best_epoch) % self.scheduler_patience == 0:
            self.learning_rate_factor *= LEARNING_RATE_FACTOR
        return False

    @property
    def should_stop(self) -> bool:
        """Whether the score has not improved for as long as `patience` allows."""
        return self.epoch - self.best_epoch >= epochs_to_wait(self.patience, self.best_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Counters as JSON-able values; an infinite best score is stored as None."""
        best = None if math.isinf(self.best_score) else self.best_score
        return {
            "best_score": best,
            "best_epoch": self.best_epoch,
            "epoch": self.epoch,
            "learning_rate_factor": self.learning_rate_factor,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from `state_dict`."""
        best = state["best_score"]
        self.best_score = math.inf if best is None else best
        self.best_epoch = state["best_epoch"]
        self.epoch = state["epoch"]
        self.learning_rate_factor = state["learning_rate_factor"]
