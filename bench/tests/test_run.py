from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bench.tests.processes import Log, claims, exit_code, fits, start
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.evidence import fingerprint
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.run import n_cores, run_many, run_one
from tabnsm_bench.store import load_results, read_result, write_result


@pytest.mark.slow
def test_failures_are_kept_apart_and_retried_once_per_call(
    table_dir: Path, tmp_path: Path, toys: Path
) -> None:
    results = tmp_path / "results"
    specs = [RunSpec(f"toy_methods:{name}", "toy") for name in ("Killed", "Failing")]
    first = Log()
    found = run_many(specs, table_dir, results, display=first)
    assert first.lines == ["toy_methods:Killed 0 failed", "toy_methods:Failing 0 failed"]
    assert found[0]["error"].startswith("killed by SIGKILL")
    assert found[1]["error"].startswith("RuntimeError: not cured yet [toy_methods.py:")
    assert found[0]["metrics"] == {"test": None, "validation": None}

    Path(os.environ["TOY_CURE"]).touch()
    assert run_one(specs[0], table_dir, results)["state"] == "done"
    third = Log()
    run_many(specs[:1], table_dir, results, display=third)
    assert third.lines == ["toy_methods:Killed 0 finished"]
    assert [name for name, _, _ in fits(toys)] == ["Killed", "Failing", "Killed"]
    assert [result["state"] for result in load_results(results)] == ["failed", "done"]
    assert not claims(results)


@pytest.mark.slow
def test_other_options_under_the_same_name_are_another_run(
    table_dir: Path, tmp_path: Path, toys: Path
) -> None:
    results, spec = tmp_path / "results", RunSpec("toy_methods:Failing", "toy")
    Path(os.environ["TOY_CURE"]).touch()
    done = run_one(spec, table_dir, results)
    assert done["code"]["fingerprint"] == fingerprint(spec)

    def remade(found: str | None, log: Log) -> dict[str, Any]:
        """The result after a run that finds one with another fingerprint."""
        code = done["code"] | {"fingerprint": found}
        write_result(done | {"code": code, "fit_seconds": -1.0}, results)
        run_many([spec], table_dir, results, display=log)
        return read_result(spec.path(results))

    log = Log()
    for other in ("that of other options", None):
        new = remade(other, log)
        assert new["code"] == done["code"]
        assert new["fit_seconds"] > 0
    Path(os.environ["TOY_CURE"]).unlink()
    kept = remade("that of other options", log)  # a failure does not take the place of a result
    assert (kept["state"], kept["fit_seconds"]) == ("done", -1.0)
    assert [line.split()[-1] for line in log.lines] == ["done", "done", "failed"]


@pytest.mark.slow
def test_calls_share_the_work(table_dir: Path, tmp_path: Path, toys: Path) -> None:
    results = tmp_path / "results"
    callers = [start("toy_methods:Threads", "0,1", table_dir, results) for _ in range(2)]
    assert [exit_code(caller) for caller in callers] == [0, 0]
    assert sorted(seed for _, seed, _ in fits(toys)) == ["0", "1"]
    found = load_results(results)
    assert [result["state"] for result in found] == ["done"] * 2
    for result in found:
        assert result["settings"]["omp"] == str(result["settings"]["n_threads"]) == str(n_cores())
    assert not claims(results)


@pytest.mark.slow
def test_several_runs_at_a_time(table_dir: Path, tmp_path: Path, toys: Path) -> None:
    chatty, threads = RunSpec("toy_methods:Chatty", "toy"), RunSpec("toy_methods:Threads", "toy")
    specs = [chatty, threads, chatty]
    found = run_many(specs, table_dir, tmp_path / "r", n_processes=2, n_threads=1)
    assert [result["state"] for result in found] == ["done", "done"]
    assert found[1]["settings"]["omp"] == "1"
    assert sorted(name for name, _, _ in fits(toys)) == ["Chatty", "Threads"]


@pytest.mark.parametrize("bad", [{"n_processes": 0}, {"n_threads": 0}])
def test_bad_numbers_are_refused(bad: dict[str, int], tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=f"{next(iter(bad))} must be >= 1"):
        run_many([], tmp_path, tmp_path, **bad)  # type: ignore[arg-type]


def test_a_file_that_is_no_result_stops_everything(table_dir: Path, tmp_path: Path) -> None:
    specs = [RunSpec("toy_methods:Linear", "toy", seed=seed) for seed in (0, 1)]
    path = specs[0].path(tmp_path / "r")
    path.parent.mkdir(parents=True)
    path.write_text("half a resu")
    with pytest.raises(InvalidDataError, match="must be JSON"):
        run_many(specs, table_dir, tmp_path / "r", n_processes=2)
    assert path.read_text() == "half a resu"
