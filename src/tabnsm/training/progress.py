"""What the user sees while training: a live bar, or one line per epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tabnsm.training.history import History


class TrainingProgress:
    """Show epochs on stderr: nothing at level 0, a live bar at 1, a line per epoch from 2.

    Parameters
    ----------
    verbose : int
    max_epochs : int
    n_networks : int, default 1
        Networks that are trained, one after the other.
    """

    def __init__(self, verbose: int, max_epochs: int, n_networks: int = 1) -> None:
        self.verbose = verbose
        self.n_networks = n_networks
        self.console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self.console,
            disable=verbose != 1,
        )
        self.task = self.progress.add_task("first epoch", total=max_epochs)

    def __enter__(self) -> TrainingProgress:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def of_network(self, number: int) -> Callable[[History], None]:
        """What shows the newest epoch of one network, counted from 0."""
        return partial(self._show, number)

    def _show(self, number: int, history: History) -> None:
        last, best = history[-1], history.best
        metric = f"validation {history.eval_metric.upper()}"
        score = history.metric_of(last)
        which = f"{number + 1}/{self.n_networks}" if self.n_networks > 1 else ""
        if self.verbose == 1:
            text = (
                f"{which and f'network {which}, '}{metric} {score:.5g}, "
                f"best {history.metric_of(best):.5g} in epoch {best.epoch}"
            )
            self.progress.update(self.task, completed=last.epoch, description=text)
        elif self.verbose >= 2:
            mark = " *" if best.epoch == last.epoch else ""
            self.console.print(
                f"{which and f'{which}  '}epoch {last.epoch:3d}  loss {last.train_loss:9.5f}  "
                f"{metric} {score:10.5g}  "
                f"lr {last.learning_rate:.2e}  {last.seconds:7.1f} s{mark}",
                highlight=False,
                soft_wrap=True,
            )
