"""Epochs as they are done on a cluster, shown by the process that called fit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tabnsm.training.history import History
from tabnsm.training.progress import TrainingProgress

_PAUSE = 0.5


class Mailbox:
    """Holds the newest history of each network, until it is looked at; an actor of Ray.

    Examples
    --------
    >>> mailbox = Mailbox()
    >>> mailbox.put(0, {"epochs": 1})
    >>> mailbox.take(), mailbox.take()
    ({0: {'epochs': 1}}, {})
    """

    def __init__(self) -> None:
        self.newest: dict[int, dict[str, Any]] = {}

    def put(self, number: int, history: dict[str, Any]) -> None:
        """Keep the history of a network, in place of an older one."""
        self.newest[number] = history

    def take(self) -> dict[int, dict[str, Any]]:
        """All that is new."""
        taken, self.newest = self.newest, {}
        return taken


@contextmanager
def shown_epochs(ray: Any, progress: TrainingProgress | None) -> Iterator[Any]:
    """Show what workers put into a mailbox, which is yielded; None where nothing is shown."""
    if progress is None or not progress.verbose:
        yield None
        return
    mailbox = ray.remote(Mailbox).options(num_cpus=0, max_restarts=-1).remote()
    is_over = threading.Event()

    def show() -> None:
        while not is_over.wait(_PAUSE):
            try:
                taken = ray.get(mailbox.take.remote(), timeout=10)
            except ray.exceptions.RayError:
                continue  # training itself reports what was lost
            for number, history in taken.items():
                show_new(progress, number, History.from_dict(history))

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield mailbox
    finally:
        is_over.set()
        thread.join()
        ray.kill(mailbox)


def show_new(progress: TrainingProgress, number: int, history: History) -> None:
    """Show the epochs of a network that were not shown yet: a line each, or the newest on a bar."""
    n_shown = len(progress.histories.get(number, ()))
    first = n_shown + 1 if progress.verbose >= 2 else len(history)
    for n_epochs in range(first, len(history)):
        epochs = history.epochs[:n_epochs]
        best = min(epochs, key=lambda record: record.score or record.validation_rmse)
        progress.of_network(number)(History(epochs, best.epoch, eval_metric=history.eval_metric))
    if first <= len(history):
        progress.of_network(number)(history)
