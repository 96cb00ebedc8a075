from __future__ import annotations

import io

from rich.console import Console

from tabnsm_bench.progress import RunTable
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.supervise import Ending, Watch


def test_a_log_gets_a_line_per_run() -> None:
    out = io.StringIO()
    with RunTable(4, Console(file=out, width=80)) as table:
        for seed, ending in enumerate(
            [Ending("done"), Ending("failed", "ValueError: bad\nmore"), Ending("timeout", "slow")]
        ):
            watch = Watch(RunSpec("[ridge]", "cpu_small", seed=seed))
            table.started(watch)
            table.ended(watch, ending)
        table.skipped(RunSpec("knn", "cpu_small"), "claimed")
    assert out.getvalue().splitlines() == [
        "[1/4] done: [ridge] on cpu_small, seed 0, split 42",
        "[2/4] failed: [ridge] on cpu_small, seed 1, split 42: ValueError: bad",
        "[3/4] timeout: [ridge] on cpu_small, seed 2, split 42: slow",
    ]
    assert [ending.state for _, ending in table.failures] == ["failed", "timeout"]
    assert table.summary() == (
        "4 runs: 1 done, 1 failed, 1 over the time limit, 1 left to another process"
    )


def test_a_terminal_gets_a_table_of_what_is_under_way() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    with RunTable(2, console) as table:
        watch = Watch(RunSpec("ridge", "cpu_small", seed=4, time_limit=60.0))
        table.started(watch)
        watch.phase, watch.seconds = "fit", 12.4
    shown = out.getvalue()
    assert "12 of 60" in shown
    for text in ("ridge", "cpu_small", "fit", "2 runs: 2 left"):
        assert text in shown
