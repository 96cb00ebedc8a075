"""The result of a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class TrialRecord:
    """One trial of a search.

    Parameters
    ----------
    number : int
        Its place in the study, from 0.
    options : dict of str to value
        What was drawn from the space.
    state : {"complete", "pruned", "failed", "repeated", "running", "waiting"}
        "repeated" ended without a score and was queued once more, as a trial of its own;
        "running" is another process's.
    score : float or None
        Of a complete trial; less is better.
    seconds : float or None
        How long it took.
    """

    number: int
    options: dict[str, Any]
    state: Literal["complete", "pruned", "failed", "repeated", "running", "waiting"]
    score: float | None
    seconds: float | None


@dataclass(frozen=True)
class TuningResult:
    """The best options that were found, and all trials.

    Parameters
    ----------
    best_options : dict of str to value
        JSON-able; of `tune`, ready for ``TabNSMRegressor(**best_options)``, without the limits
        of a trial.
    best_score : float
        Their score; of `tune`, the `eval_metric` on the validation rows.
    trials : tuple of TrialRecord
        All trials of the study, those of earlier runs and other processes included.
    stopped : {"trials", "time", "interrupted"}
        Which budget ended the search, or Ctrl-C.
    storage : Path, str or None
        The study's file, or the URL of its database without the password.
    """

    best_options: dict[str, Any]
    best_score: float
    trials: tuple[TrialRecord, ...]
    stopped: Literal["trials", "time", "interrupted"]
    storage: Path | str | None
