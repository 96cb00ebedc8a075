"""What the user sees while training: a live bar with the time left, or one line per epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import cast

from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import Patience, epochs_to_wait
from tabnsm.training.history import History


def show_preparation(verbose: int, n_rows: int, n_columns: int) -> None:
    """Print that a fit begins: rows are encoded before the first epoch.

    Parameters
    ----------
    verbose : int
        0 prints nothing.
    n_rows, n_columns : int
        Of the table.
    """
    if verbose >= 1:
        from rich.console import Console

        text = f"Preparing {n_rows:,} rows and {n_columns:,} columns"
        Console(stderr=True).print(text, highlight=False)


class TrainingProgress:
    """Show epochs on stderr: nothing at level 0, a live bar at 1, a line per epoch from 2.

    Parameters
    ----------
    verbose : int
    max_epochs : int
    n_networks : int, default 1
        Networks that are trained, one after the other or side by side; the bar is for all.
    patience : int, "auto" or None, default None
        Epochs without a better score before a network stops; None is no such stop.
    """

    def __init__(
        self, verbose: int, max_epochs: int, n_networks: int = 1, patience: Patience | None = None
    ) -> None:
        from rich import progress as rich
        from rich.console import Console

        self.verbose = verbose
        self.max_epochs = max_epochs
        self.n_networks = n_networks
        self.patience: Patience = max_epochs if patience is None else patience
        self.histories: dict[int, History] = {}
        self.console = Console(stderr=True)
        self.progress = rich.Progress(
            rich.TextColumn("training"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TextColumn("{task.description}"),
            rich.TimeElapsedColumn(),
            console=self.console,
            disable=verbose != 1,
        )
        self.task = self.progress.add_task("first epoch", total=n_networks * max_epochs)

    @classmethod
    def of(cls, config: TrainingConfig, verbose: int) -> TrainingProgress:
        """Progress of a fit whose options are resolved."""
        n_networks = cast("int", config.n_ensemble)
        return cls(verbose, config.max_epochs, n_networks, config.patience)

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
        self.histories[number] = history
        which = f"{number + 1}/{self.n_networks}" if self.n_networks > 1 else ""
        if self.verbose == 1:
            left = seconds_left(self.histories, self.n_networks, self.max_epochs, self.patience)
            # Short: a terminal of 80 columns has to hold it.
            text = (
                f"{which and f'network {which}, '}{history.eval_metric.upper()} {score:.5g}, "
                f"best {history.metric_of(best):.5g}, {format_left(left)}"
            )
            # A network that stops early has done all of its part.
            done = sum(
                self.max_epochs if h.stop_reason else len(h) for h in self.histories.values()
            )
            self.progress.update(self.task, completed=done, description=text)
        elif self.verbose >= 2:
            mark = " *" if best.epoch == last.epoch else ""
            self.console.print(
                f"{which and f'{which}  '}epoch {last.epoch:3d}  loss {last.train_loss:9.5f}  "
                f"{metric} {score:10.5g}  "
                f"lr {last.learning_rate:.2e}  {last.seconds:7.1f} s{mark}",
                highlight=False,
                soft_wrap=True,
            )


def seconds_left(
    histories: Mapping[int, History], n_networks: int, max_epochs: int, patience: Patience
) -> float:
    """Estimate of the seconds until all networks are trained.

    A network takes as many epochs as those that are finished did, or, as long as none is, stops
    `patience` epochs after its best one so far.

    Parameters
    ----------
    histories : mapping of int to History
        Of the networks that are begun; a finished one says why it stopped.
    n_networks, max_epochs : int
    patience : int or "auto"

    Returns
    -------
    float

    Examples
    --------
    >>> from tabnsm.training.history import EpochRecord
    >>> epochs = [EpochRecord(k, 0.5, 2.0, 1e-3, 3.0 * k, False) for k in (1, 2)]
    >>> seconds_left({0: History(epochs, best_epoch=1)}, 2, max_epochs=100, patience=4)
    24.0
    """
    finished = [len(history) for history in histories.values() if history.stop_reason]
    running = [history for history in histories.values() if not history.stop_reason]
    if finished:
        length = sum(finished) / len(finished)
        remaining = [length - len(history) for history in running]
    else:
        lengths = [
            min(h.best_epoch + epochs_to_wait(patience, h.best_epoch), max_epochs) for h in running
        ]
        length = sum(lengths) / len(lengths)
        remaining = [n - len(history) for n, history in zip(lengths, running, strict=True)]
    n_epochs = sum(max(n, 1) for n in remaining) + (n_networks - len(histories)) * length
    n_done = sum(len(history) for history in histories.values())
    per_epoch = sum(history.seconds for history in histories.values()) / n_done
    return per_epoch * n_epochs / max(len(running), 1)


def format_left(seconds: float) -> str:
    """Time left in words.

    Examples
    --------
    >>> format_left(41.7), format_left(600.0), format_left(9000.0)
    ('~42 s left', '~10 min left', '~2.5 h left')
    """
    if seconds < 100:
        return f"~{seconds:.0f} s left"
    minutes = seconds / 60
    return f"~{minutes:.0f} min left" if minutes < 100 else f"~{minutes / 60:.1f} h left"
