"""What the user sees while texts are embedded: a live bar, or lines in a log."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

# Seconds between two lines of a log.
_PAUSE = 10.0


class TextProgress:
    """Show texts on stderr, from before the first one is looked up, with the time that is left.

    Parameters
    ----------
    verbose : int
        0 shows nothing; from 1 on, a terminal has a bar and a log some lines.
    """

    def __init__(self, verbose: int) -> None:
        self.console: Console | None = None
        self.progress: Progress | None = None
        if verbose < 1:
            return
        from rich.console import Console

        self.console = Console(stderr=True)
        if self.console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("left:"))
            self.progress = Progress(
                *columns,
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
                speed_estimate_period=600.0,
            )
            self.task = self.progress.add_task("Reading texts", total=None)

    def __enter__(self) -> TextProgress:
        if self.progress is not None:
            self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def look_up(self, n_texts: int) -> None:
        """Show that texts are looked up in the cache."""
        if self.progress is not None:
            self.progress.update(self.task, description=f"Looking up {n_texts:,} texts")

    def begin(self, n_texts: int, work: int) -> None:
        """Show that some of them are embedded; `work` counts their characters."""
        self.n_texts, self.work = n_texts, work
        self.finished, self.n_done = 0, 0
        self.started = self.shown = time.monotonic()
        if self.progress is not None:
            text = f"Encoding {n_texts:,} texts"
            self.progress.update(self.task, description=text, total=work or 1, completed=0)
        elif self.console is not None and n_texts:
            self.console.print(f"Encoding {n_texts:,} distinct texts", highlight=False)

    def done(self, n_texts: int, work: int) -> None:
        """Show that so many more texts, of so much work, are embedded."""
        self.finished += work
        self.n_done += n_texts
        if self.progress is not None:
            self.progress.update(self.task, completed=self.finished)
            return
        now = time.monotonic()
        is_due = now - self.shown >= _PAUSE and self.n_done < self.n_texts
        if self.console is None or not is_due:
            return
        self.shown = now
        left = (now - self.started) * (self.work / self.finished - 1)
        self.console.print(
            f"  {self.n_done:,} of {self.n_texts:,} texts, about {left:.0f} s left", highlight=False
        )
