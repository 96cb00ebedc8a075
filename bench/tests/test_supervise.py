from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from bench.tests.processes import Log, claims, exit_code, fits, is_alive, start, wait_for
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.run import run_many, run_one
from tabnsm_bench.store import load_results


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_kill_9_of_a_worker_leaves_the_rest_alone(
    table_dir: Path, tmp_path: Path, toys: Path
) -> None:
    results = tmp_path / "results"
    caller = start("toy_methods:Endless", "0", table_dir, results)
    wait_for(lambda: len(fits(toys)) == 1)
    os.kill(int(fits(toys)[0][2]), signal.SIGKILL)
    assert exit_code(caller) == 0
    assert [result["state"] for result in load_results(results)] == ["failed"]
    assert not claims(results)
    child = int(Path(os.environ["TOY_CHILD"]).read_text())
    wait_for(lambda: not is_alive(child))

    log = Log()
    limited = RunSpec("toy_methods:Endless", "toy", time_limit=1.0)
    run_many([limited], table_dir, results, display=log)
    assert log.lines == ["toy_methods:Endless 0 timeout"]
    [error] = [r["error"] for r in load_results(results) if r["state"] == "timeout"]
    assert "in phase 'fit', with a time limit of 1 s" in error
    child = int(Path(os.environ["TOY_CHILD"]).read_text())
    wait_for(lambda: not is_alive(child))
    again = Log()
    run_many([limited], table_dir, results, display=again)
    assert again.lines == ["toy_methods:Endless 0 finished"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_kill_9_of_the_caller_ends_its_worker_and_frees_its_claim(
    table_dir: Path, tmp_path: Path, toys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, temporary = tmp_path / "results", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    caller = start("toy_methods:Endless", "0", table_dir, results)
    wait_for(lambda: len(fits(toys)) == 1)
    assert len(list(temporary.glob("tabnsm-*"))) == 1
    worker = int(fits(toys)[0][2])
    child = int(Path(os.environ["TOY_CHILD"]).read_text())
    waiting = Log()
    spec = RunSpec("toy_methods:Endless", "toy")
    assert run_many([spec], table_dir, results, display=waiting) == []
    assert waiting.lines == ["toy_methods:Endless 0 claimed"]
    with pytest.raises(InvalidOptionError, match="another process"):
        run_one(spec, table_dir, results)
    caller.kill()
    caller.wait()
    wait_for(lambda: not is_alive(worker) and not is_alive(child))
    assert not list(temporary.glob("tabnsm-*"))
    assert load_results(results) == []
    assert len(claims(results)) == 1

    stopped = start("toy_methods:Endless", "0", table_dir, results)
    wait_for(lambda: len(fits(toys)) == 2)
    stopped.send_signal(signal.SIGINT)
    assert exit_code(stopped) != 0
    wait_for(lambda: not is_alive(int(fits(toys)[1][2])))
    assert load_results(results) == []
    assert not claims(results)
