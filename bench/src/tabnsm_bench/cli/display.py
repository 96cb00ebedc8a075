"""How a command displays its runs: a live table while they run, one line at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tabnsm_bench.cli.arguments import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from tabnsm_bench.progress import RunTable


@contextmanager
def display_runs(n_runs: int, console: Console) -> Iterator[RunTable]:
    """Display runs and their summary; Ctrl-C ends the command and keeps finished runs.

    Parameters
    ----------
    n_runs : int
        How many runs there are in all.
    console : rich.console.Console
        Where to print.

    Yields
    ------
    RunTable
        Receives the progress of `run_many`.
    """
    from tabnsm_bench.progress import RunTable

    table = RunTable(n_runs, console)
    try:
        with table:
            yield table
    except KeyboardInterrupt:
        console.print(
            f"Interrupted. {table.summary()}. Run the same command again to continue.",
            markup=False,
            soft_wrap=True,
        )
        raise SystemExit(INTERRUPTED) from None
    console.print(table.summary(), markup=False, soft_wrap=True)
