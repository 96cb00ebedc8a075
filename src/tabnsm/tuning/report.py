"""Report: how an objective speaks to the search that called it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NoReturn

from tabnsm.tuning.progress import SearchProgress

if TYPE_CHECKING:
    from optuna.trial import Trial


class Report:
    """Handed to the objective: takes the steps of a trial, and ends a hopeless one.

    Parameters
    ----------
    trial : optuna.Trial
    deadline : float
        Monotonic time at which the search ends.
    progress : SearchProgress
    best_score : float
        Of all trials that were complete when this one began; infinite if none was.
    """

    def __init__(
        self, trial: Trial, deadline: float, progress: SearchProgress, best_score: float
    ) -> None:
        self._trial = trial
        self._deadline = deadline
        self._progress = progress
        self.best_score = best_score

    def __call__(self, step: int, score: float) -> None:
        """Take the best score up to a step; does not return if the trial is hopeless.

        Parameters
        ----------
        step : int
            Counted from 1.
        score : float
            Less is better.
        """
        self._trial.report(score, step)
        self._progress.step(self._trial.number, step, score)
        if self._trial.should_prune():
            self.prune()

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the search ends, at least 0; None without a time limit."""
        if math.isinf(self._deadline):
            return None
        return max(0.0, self._deadline - time.monotonic())

    def prune(self) -> NoReturn:
        """End the trial as hopeless."""
        from optuna import TrialPruned

        raise TrialPruned

    def put_back(self) -> NoReturn:
        """End the trial for lack of time; a later run of the study tries it again, in full."""
        raise PutBack


class PutBack(Exception):
    """The trial is to be repeated in full."""
