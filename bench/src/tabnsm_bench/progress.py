"""Progress of the runs: a live table in a terminal, a line per run in a log."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.supervise import Ending, Watch


class RunTable:
    """Displays every run that `run_many` starts and ends.

    Parameters
    ----------
    n_runs : int
        How many runs there are in all.
    console : rich.console.Console
        Where to.

    Examples
    --------
    >>> import io
    >>> with RunTable(2, Console(file=io.StringIO(), width=80)) as table:
    ...     table.skipped(RunSpec("ridge", "cpu_small"), "finished")
    >>> table.summary()
    '2 runs: 1 finished before, 1 left'
    """

    def __init__(self, n_runs: int, console: Console) -> None:
        self.console = console
        self.failures: list[tuple[RunSpec, Ending]] = []
        self._n_runs = n_runs
        self._counts: Counter[str] = Counter()
        self._running: list[Watch] = []
        self._lock = threading.Lock()
        self._live: Live | None = None

    def __enter__(self) -> RunTable:
        if self.console.is_terminal:
            self._live = Live(
                console=self.console, get_renderable=self._render, refresh_per_second=4
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def started(self, watch: Watch) -> None:
        """A run begins."""
        with self._lock:
            self._running.append(watch)

    def ended(self, watch: Watch, ending: Ending) -> None:
        """A run is over."""
        with self._lock:
            self._running.remove(watch)
            self._counts[ending.state] += 1
            if ending.state != "done":
                self.failures.append((watch.spec, ending))
            n_over = self._counts.total()
        line = f"[{n_over}/{self._n_runs}] {ending.state}: {_name(watch.spec)}"
        if ending.error:
            line += f": {_first_line(ending.error)}"
        self.console.print(Text(line), soft_wrap=True)

    def skipped(self, spec: RunSpec, reason: str) -> None:
        """A run is left alone."""
        with self._lock:
            self._counts[reason] += 1

    def summary(self) -> str:
        """Counts of all runs, in one line."""
        states = {
            "done": "done",
            "failed": "failed",
            "timeout": "over the time limit",
            "finished": "finished before",
            "claimed": "left to another process",
        }
        parts = [f"{self._counts[key]} {text}" for key, text in states.items() if self._counts[key]]
        left = self._n_runs - self._counts.total()
        parts += [f"{left} left"] if left else []
        noun = "run" if self._n_runs == 1 else "runs"
        return f"{self._n_runs} {noun}: {', '.join(parts)}"

    def _render(self) -> Group:
        table = Table("method", "dataset", "seed", "split", "phase", "seconds", box=None)
        with self._lock:
            for watch in self._running:
                spec = watch.spec
                seconds = f"{watch.seconds:.0f}"
                table.add_row(
                    Text(spec.method),
                    Text(spec.dataset),
                    str(spec.seed),
                    str(spec.split),
                    watch.phase,
                    seconds if spec.time_limit is None else f"{seconds} of {spec.time_limit:g}",
                )
            return Group(table, Text(self.summary(), style="bold"))


def _name(spec: RunSpec) -> str:
    return f"{spec.method} on {spec.dataset}, seed {spec.seed}, split {spec.split}"


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0]
