"""What the user sees while a dataset is read: the passes over it, and how far each is."""

from __future__ import annotations

import sys
import time

# Seconds between two lines of a log.
_PAUSE = 10.0


class PassProgress:
    """Show passes on stderr: one line that is written over on a terminal, some lines in a log.

    Parameters
    ----------
    verbose : int
        0 shows nothing.

    Examples
    --------
    >>> progress = PassProgress(0)
    >>> progress.begin("Reading columns", 3)
    >>> progress.advance()
    """

    def __init__(self, verbose: int) -> None:
        self.is_shown = verbose > 0 and sys.stderr is not None
        self.is_terminal = self.is_shown and sys.stderr.isatty()
        self.text, self.done, self.total = "", 0, 1
        self.started = self.shown = 0.0

    def note(self, text: str) -> None:
        """Show one line."""
        if self.is_shown:
            print(text, file=sys.stderr, flush=True)

    def begin(self, text: str, total: int) -> None:
        """Show that a pass of so many steps begins."""
        self.text, self.done, self.total = text, 0, max(total, 1)
        self.started = self.shown = time.monotonic()
        self._show(f"{text}: {total:,} in all")

    def advance(self) -> None:
        """Show that a step is done."""
        self.done += 1
        now = time.monotonic()
        if self.is_terminal or now - self.shown >= _PAUSE:
            self.shown = now
            left = (now - self.started) * max(self.total / self.done - 1, 0)
            self._show(f"{self.text}: {self.done:,} of {self.total:,}, about {left:.0f} s left")

    def end(self) -> None:
        """Show how long the pass took."""
        self._show(f"{self.text}: done in {time.monotonic() - self.started:.1f} s")
        if self.is_terminal:
            print(file=sys.stderr)

    def _show(self, text: str) -> None:
        if self.is_terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            self.note(text)
