"""search: budgets, pruning, failures, resuming, sharing."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tabnsm import InvalidOptionError, MissingExtraError, TabNSMError
from tabnsm.tuning import Choice, Integer, Real, Report, TuningResult, search
from tabnsm.tuning.queue import TrialQueue, quiet_optuna

SPACE = {"x": Real(-3, 3), "n": Integer(1, 5), "kind": Choice("a", "b")}


def bowl(options: dict[str, Any], report: Report) -> float:
    score: float = options["x"] ** 2 + options["n"] + (options["kind"] == "b")
    return score


def states(result: TuningResult) -> list[str]:
    return [trial.state for trial in result.trials]


def drawn(result: TuningResult) -> list[dict[str, Any]]:
    return [t.options for t in result.trials if t.state in ("complete", "pruned")]


def test_finds_the_minimum_better_than_chance() -> None:
    result = search(SPACE, bowl, 60)
    assert result.best_score < 1.3
    assert result.best_options["n"] == 1
    assert result.best_options["kind"] == "a"
    assert result.stopped == "trials"
    assert states(result) == ["complete"] * 60
    best = min(result.trials, key=lambda trial: trial.score or 0.0)
    assert (best.options, best.score) == (result.best_options, result.best_score)


def test_same_seed_same_trials() -> None:
    first, second, other = (search(SPACE, bowl, 14, random_state=seed) for seed in (0, 0, 1))
    assert drawn(first) == drawn(second)
    assert drawn(first) != drawn(other)
    assert len({str(options) for options in drawn(first)}) == 14


def test_defaults_come_first() -> None:
    first = {"x": 0.5, "n": 2, "kind": "b"}
    assert search(SPACE, bowl, 2, first=first).trials[0].options == first
    with pytest.raises(InvalidOptionError, match="first must have one value inside the space"):
        search(SPACE, bowl, 2, first=first | {"n": 9})


def test_trials_that_fall_behind_are_pruned() -> None:
    steps: list[int] = []

    def slow(options: dict[str, Any], report: Report) -> float:
        for step in range(1, 21):
            report(step, abs(options["x"]) + 1 / step)
        steps.append(step)
        return abs(options["x"]) + 1 / step

    result = search({"x": Real(-3, 3)}, slow, 20)
    assert states(result).count("pruned") >= 3
    assert states(result).count("complete") == len(steps) >= 5
    assert all(trial.score is None for trial in result.trials if trial.state == "pruned")
    worst = max(abs(trial.options["x"]) for trial in result.trials[4:] if trial.score is not None)
    pruned = [abs(trial.options["x"]) for trial in result.trials if trial.state == "pruned"]
    assert max(pruned) > worst


def test_a_failure_is_tried_again_and_the_search_goes_on() -> None:
    calls = 0

    def shaky(options: dict[str, Any], report: Report) -> float:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError("disk full")
        return bowl(options, report)

    result = search(SPACE, shaky, 4)
    assert states(result) == ["complete", "repeated", "complete", "complete", "complete"]
    assert result.trials[1].options == result.trials[2].options
    assert drawn(result) == drawn(search(SPACE, bowl, 4))


def test_what_fails_twice_counts_as_failed() -> None:
    def picky(options: dict[str, Any], report: Report) -> float:
        if options["kind"] == "b":
            raise ValueError("b is not for me")
        return bowl(options, report)

    result = search(SPACE, picky, 12, first={"x": 1.0, "n": 1, "kind": "a"})
    assert states(result).count("failed") >= 2
    assert states(result).count("failed") == states(result).count("repeated")
    assert states(result).count("failed") + states(result).count("complete") == 12


def test_an_objective_that_always_fails_is_the_users_error() -> None:
    def broken(options: dict[str, Any], report: Report) -> float:
        raise KeyError("price")

    with pytest.raises(KeyError, match="price"):
        search(SPACE, broken, 20)
    with pytest.raises(TabNSMError, match="finite score, got nan"):
        search(SPACE, lambda options, report: float("nan"), 20)


def test_no_complete_trial_is_an_error() -> None:
    with pytest.raises(TabNSMError, match="At least 1 of the 3 trials must complete"):
        search(SPACE, lambda options, report: report.prune(), 3)


def test_time_limit() -> None:
    left: list[float] = []

    def objective(options: dict[str, Any], report: Report) -> float:
        assert report.seconds_left is not None
        left.append(report.seconds_left)
        time.sleep(0.05)
        return bowl(options, report)

    result = search(SPACE, objective, 10**6, time_limit=0.5)
    assert result.stopped == "time"
    assert left == sorted(left, reverse=True)
    assert 0 <= left[0] <= 0.5
    assert len(result.trials) == len(left)


def test_a_time_limit_that_is_over_at_once_still_gives_an_answer() -> None:
    result = search(SPACE, bowl, 5, time_limit=1e-9)
    assert (result.stopped, states(result)) == ("time", ["complete"])


def test_a_trial_that_is_put_back_is_done_next_time(tmp_path: Path) -> None:
    def objective(options: dict[str, Any], report: Report) -> float:
        if report.seconds_left is not None and report.best_score < float("inf"):
            report.put_back()
        return bowl(options, report)

    storage = tmp_path / "s.journal"
    first = search(SPACE, objective, 3, time_limit=3600, storage=storage)
    assert (first.stopped, states(first)) == ("time", ["complete", "repeated", "waiting"])
    second = search(SPACE, objective, 3, storage=storage)
    assert states(second) == ["complete", "repeated", "complete", "complete"]
    assert drawn(second) == drawn(search(SPACE, bowl, 3))


def test_ctrl_c_keeps_the_best_and_resumes(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    calls = 0

    def interrupted(options: dict[str, Any], report: Report) -> float:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return bowl(options, report)

    result = search(SPACE, interrupted, 12, storage=storage)
    assert result.stopped == "interrupted"
    assert states(result)[:3] == ["complete"] * 3
    assert result.best_score == min(trial.score or 99 for trial in result.trials[:3])
    whole = search(SPACE, bowl, 12)
    assert drawn(search(SPACE, bowl, 12, storage=storage)) == drawn(whole)
    calls = 3
    with pytest.raises(KeyboardInterrupt):
        search(SPACE, interrupted, 12)


@pytest.mark.parametrize("first", [None, {"x": 0.5, "n": 2, "kind": "b"}])
def test_a_trial_killed_while_it_is_drawn_is_drawn_again(
    tmp_path: Path, first: dict[str, Any] | None
) -> None:
    """The journal as a kill leaves it: cut after each line that the first trial wrote."""
    storage = tmp_path / "s.journal"
    whole = search(SPACE, bowl, 3, storage=storage, first=first)
    lines = storage.read_bytes().splitlines(keepends=True)
    mark = b'"op_code":4' if first is None else b'"state":0'  # made, or set to running
    begun = next(k for k, line in enumerate(lines) if mark in line)
    for n_lines in range(begun + 1, begun + 6):
        storage.write_bytes(b"".join(lines[:n_lines]))
        resumed = search(SPACE, bowl, 3, storage=storage, first=first)
        assert states(resumed) == ["repeated", "complete", "complete", "complete"]
        assert drawn(resumed) == drawn(whole)


def test_an_interruption_is_no_attempt() -> None:
    """A trial that was put back for Ctrl-C is still tried twice if it fails."""
    queue = TrialQueue(SPACE, 1, 0, None)
    with quiet_optuna():
        queue.open("", None)
        for count in (False, True, True):
            trial = queue.next_trial()
            assert trial is not None
            queue.put_back(trial.number, count)
        assert [record.state for record in queue.records()] == ["repeated", "repeated", "failed"]
        assert queue.next_trial() is None


def test_a_finished_study_is_not_run_again(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    result = search(SPACE, bowl, 5, storage=storage)
    content = storage.read_bytes()

    def never(options: dict[str, Any], report: Report) -> float:
        raise AssertionError

    again = search(SPACE, never, 5, storage=storage)
    assert again == result
    assert again.storage == storage
    assert storage.read_bytes().startswith(content)
    assert len(search(SPACE, bowl, 7, storage=storage).trials) == 7


def test_another_search_is_refused(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    search(SPACE, bowl, 2, storage=storage, fingerprint="a")
    with pytest.raises(InvalidOptionError, match="was made with other data or options"):
        search(SPACE, bowl, 2, storage=storage, fingerprint="b")
    with pytest.raises(InvalidOptionError, match="was made with another space"):
        search(SPACE | {"x": Real(0, 1)}, bowl, 2, storage=storage, fingerprint="a")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 0}, "n_trials must be an integer >= 1, got 0"),
        ({"n_trials": 2.5}, "n_trials must be an integer >= 1, got 2.5"),
        ({"time_limit": 0}, "time_limit must be None or > 0"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"storage": "/no/such/folder/s.journal"}, "which does not exist"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        search(SPACE, bowl, **arguments)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_optuna(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("optuna"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_optuna)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[tune\]"'):
        search(SPACE, bowl, 2)


def test_progress_on_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    def objective(options: dict[str, Any], report: Report) -> float:
        report(1, bowl(options, report))
        if options["n"] == 5:
            raise ValueError("no [fives]")
        return bowl(options, report)

    search(SPACE, objective, 6, random_state=2)
    assert capfd.readouterr() == ("", "")
    search(SPACE, objective, 6, verbose=1)
    shown = capfd.readouterr().err
    assert "best" in shown
    assert "6/6" in shown
    result = search(SPACE, objective, 6, verbose=2, score_name="error")
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == len(result.trials)
    assert f"error {result.best_score:.5g} *" in "\n".join(lines)
    assert ("no [fives]" in "\n".join(lines)) == ("repeated" in states(result))


# Real processes. The objective waits, so that a kill finds it at work, and begins only when as
# many processes as there should be are in the middle of a trial.
WORKER = """
import os, sys, time
from pathlib import Path
from tabnsm.tuning import Choice, Integer, Real, search

storage, n_trials, wait, n_processes = sys.argv[1:]

def bowl(options, report):
    folder = Path(storage).parent
    (folder / f"at-work-{os.getpid()}").touch()
    give_up = time.monotonic() + 120
    while len(list(folder.glob("at-work-*"))) < int(n_processes):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    for step in range(1, 5):
        print("step", flush=True)
        time.sleep(float(wait))
        report(step, 100.0)
    return options["x"] ** 2 + options["n"] + (options["kind"] == "b")

space = {"x": Real(-3, 3), "n": Integer(1, 5), "kind": Choice("a", "b")}
search(space, bowl, int(n_trials), storage=storage)
"""


def start(
    storage: Path, n_trials: int, wait: float = 0.0, n_processes: int = 1
) -> subprocess.Popen[str]:
    arguments = [str(storage), str(n_trials), str(wait), str(n_processes)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


def kill_after(process: subprocess.Popen[str], n_steps: int) -> None:
    assert process.stdout is not None
    for _ in range(n_steps):
        assert process.stdout.readline() == "step\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()


def read_study(storage: Path, n_trials: int) -> TuningResult:
    """The state of a finished study."""

    def never(options: dict[str, Any], report: Report) -> float:
        raise AssertionError(options)

    return search(SPACE, never, n_trials, storage=storage)


@pytest.mark.slow
def test_one_kill_loses_nothing(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    kill_after(start(storage, 4, wait=0.02), n_steps=7)
    finish(start(storage, 4))
    result = read_study(storage, 4)
    assert states(result) == ["complete", "repeated", "complete", "complete", "complete"]
    assert drawn(result) == drawn(search(SPACE, bowl, 4))


@pytest.mark.slow
def test_a_trial_that_kills_twice_is_given_up(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    for n_steps in (6, 3):  # in the middle of the second trial, then again in its repetition
        kill_after(start(storage, 5, wait=0.02), n_steps)
    finish(start(storage, 5))
    result = read_study(storage, 5)
    assert states(result) == ["complete", "repeated", "failed", "complete", "complete", "complete"]
    assert result.trials[1].options == result.trials[2].options


@pytest.mark.slow
def test_two_processes_share_the_trials(tmp_path: Path) -> None:
    import optuna

    storage = tmp_path / "s.journal"
    for process in [start(storage, 9, wait=0.01, n_processes=2) for _ in range(2)]:
        finish(process)
    result = read_study(storage, 9)
    assert states(result) == ["complete"] * 9
    assert len({str(options) for options in drawn(result)}) == 9
    backend = optuna.storages.journal.JournalFileBackend(str(storage))
    study = optuna.load_study(study_name="tabnsm", storage=optuna.storages.JournalStorage(backend))
    assert len({trial.user_attrs["worker"] for trial in study.trials}) == 2


@pytest.mark.slow
def test_trials_of_running_processes_stay_and_of_killed_ones_are_repeated(tmp_path: Path) -> None:
    storage = tmp_path / "s.journal"
    first = start(storage, 3, n_processes=2)  # waits for a second one in its first trial
    while not list(tmp_path.glob("at-work-*")):
        assert first.poll() is None, first.communicate()
        time.sleep(0.01)
    seen = search(SPACE, bowl, 2, storage=storage)
    assert states(seen) == ["running", "complete"]
    first.kill()
    first.communicate()
    result = search(SPACE, bowl, 3, storage=storage)
    assert states(result) == ["repeated", "complete", "complete", "complete"]
    assert result.trials[2].options == result.trials[0].options
