"""Runs as a command shows them: a table while they go, a line when they are over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tabnsm_bench.cli.arguments import INTERRUPTED

if TYPE_CHECKING:
    from rich.console import Console

    from tabnsm_bench.progress import RunTable


@contextmanager
def shown_runs(n_runs: int, console: Console) -> Iterator[RunTable]:
    """Show runs and sum them up; Ctrl-C ends the command, as nothing finished is lost.

    Parameters
    ----------
    n_runs : int
        How many runs there are in all.
    console : rich.console.Console
        Where to.

    Yields
    ------
    RunTable
        What `run_many` tells of its runs.
    """
    from tabnsm_bench.progress import RunTable

    table = RunTable(n_runs, console)
    try:
        with table:
            yield table
    except KeyboardInterrupt:
        console.print(
            f"Interrupted. {table.summary()}. The same command goes on from here.",
            markup=False,
            soft_wrap=True,
        )
        raise SystemExit(INTERRUPTED) from None
    console.print(table.summary(), markup=False, soft_wrap=True)
