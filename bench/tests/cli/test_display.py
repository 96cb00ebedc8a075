from __future__ import annotations

import io

import pytest
from rich.console import Console

from tabnsm_bench.cli.arguments import INTERRUPTED
from tabnsm_bench.cli.display import display_runs
from tabnsm_bench.protocol import RunSpec


def test_the_summary_is_the_last_line() -> None:
    out = io.StringIO()
    with display_runs(2, Console(file=out, width=80)) as table:
        table.skipped(RunSpec("ridge", "cpu_small"), "finished")
    assert out.getvalue().splitlines()[-1] == "2 runs: 1 finished before, 1 left"


def test_ctrl_c_ends_the_command_with_its_exit_code() -> None:
    out = io.StringIO()
    with (
        pytest.raises(SystemExit) as ending,
        display_runs(2, Console(file=out, width=80)),
    ):
        raise KeyboardInterrupt
    assert ending.value.code == INTERRUPTED
    assert "Interrupted. 2 runs: 2 left. Run the same command again to continue." in out.getvalue()
