"""What the user sees while options are searched: a live bar, or one line per trial."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tabnsm.tuning.result import TrialRecord


class SearchProgress:
    """Show trials on stderr: nothing at level 0, a live bar at 1, a line per trial from 2."""

    def __init__(self, verbose: int, n_trials: int, score_name: str) -> None:
        self.verbose = verbose
        self.score_name = score_name
        self.best: TrialRecord | None = None
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("tuning"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TextColumn("left:"),
            # The time of a trial says how long the others take: the last ones count.
            TimeRemainingColumn(),
            console=self.console,
            disable=verbose != 1,
            speed_estimate_period=3600.0,
        )
        self.task = self.progress.add_task("first trial", total=n_trials)

    def __enter__(self) -> SearchProgress:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def start(self, n_done: int, best: TrialRecord | None) -> None:
        """Show where the study stands when a trial begins."""
        self.best = best
        self.progress.update(self.task, completed=n_done)

    def step(self, number: int, step: int, score: float) -> None:
        """Show a step of the running trial."""
        text = f"trial {number}, step {step}: {score:.5g}"
        self.progress.update(self.task, description=text + self._best_so_far())

    def end(self, record: TrialRecord, error: str = "") -> None:
        """Show a trial that ended."""
        is_best = record.score is not None and (
            self.best is None or self.best.score is None or record.score < self.best.score
        )
        if is_best:
            self.best = record
        self.progress.update(self.task, description=f"trial {record.number}" + self._best_so_far())
        if self.verbose < 2:
            return
        outcome = record.state if record.score is None else f"{self.score_name} {record.score:.5g}"
        options = ", ".join(f"{name}={_short(value)}" for name, value in record.options.items())
        seconds = "" if record.seconds is None else f"  {record.seconds:.1f} s"
        mark = " *" if is_best else ""
        self.console.print(
            escape(
                f"trial {record.number:3d}  {outcome}{mark}{seconds}  {options}  {error}".rstrip()
            ),
            highlight=False,
            soft_wrap=True,
        )

    def _best_so_far(self) -> str:
        if self.best is None or self.best.score is None:
            return ""
        return f", best {self.best.score:.5g} in trial {self.best.number}"


def show_preparation(verbose: int, n_trials: int) -> None:
    """Print at once that a search begins: rows are encoded before the first trial.

    Parameters
    ----------
    verbose : int
        0 prints nothing.
    n_trials : int
    """
    if verbose >= 1:
        Console(stderr=True).print(f"Preparing rows for {n_trials} trials", highlight=False)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
