"""What the user sees while training: a live bar, or one line per epoch."""

from __future__ import annotations

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
    """

    def __init__(self, verbose: int, max_epochs: int) -> None:
        self.verbose = verbose
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

    def __call__(self, history: History) -> None:
        """Show the newest epoch."""
        last, best = history[-1], history.best
        if self.verbose == 1:
            text = (
                f"validation RMSE {last.validation_rmse:.5g}, "
                f"best {best.validation_rmse:.5g} in epoch {best.epoch}"
            )
            self.progress.update(self.task, completed=last.epoch, description=text)
        elif self.verbose >= 2:
            mark = " *" if best.epoch == last.epoch else ""
            self.console.print(
                f"epoch {last.epoch:3d}  loss {last.train_loss:9.5f}  "
                f"validation RMSE {last.validation_rmse:10.5g}  "
                f"lr {last.learning_rate:.2e}  {last.seconds:7.1f} s{mark}",
                highlight=False,
            )
