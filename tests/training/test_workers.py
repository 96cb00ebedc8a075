"""Networks side by side in real processes: same bits, and nothing left after any signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.errors import TabNSMWarning
from tabnsm.nn.ensemble import networks_of
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.loop import Trainer
from tabnsm.training.workers import WorkerPool, _cause, warning_class
from tests.fakes import FakeTextEncoder

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="workers are for POSIX systems"),
]

SMALL: dict[str, Any] = {"d_token": 8, "head_width": 8, "max_epochs": 3, "random_state": 0}


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(160, 4))
    return X, X[:, 0] * X[:, 1]


def fit(n_jobs: int | None, n_ensemble: int = 3, **options: Any) -> TabNSMRegressor:
    return TabNSMRegressor(**SMALL | options, n_ensemble=n_ensemble, n_jobs=n_jobs).fit(*rows())


@pytest.fixture(scope="module")
def alone() -> np.ndarray:
    return fit(1).predict(rows()[0])


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[WorkerPool]:
    """The pools that fits start, in order."""
    started: list[WorkerPool] = []
    start = WorkerPool.start

    def noted(self: WorkerPool, n_workers: int) -> None:
        started.append(self)
        start(self, n_workers)

    monkeypatch.setattr(WorkerPool, "start", noted)
    return started


def is_gone(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(("n_jobs", "n_workers"), [(2, 1), (8, 2)])
def test_the_bits_do_not_depend_on_the_number_of_workers(
    alone: np.ndarray, pools: list[WorkerPool], n_jobs: int, n_workers: int
) -> None:
    model = fit(n_jobs)
    np.testing.assert_array_equal(model.predict(rows()[0]), alone)
    assert [len(history) for history in model.histories_] == [3, 3, 3]
    assert len(pools[0].process_ids) == n_workers
    assert all(is_gone(process_id) for process_id in pools[0].process_ids)


def test_one_job_starts_no_process(alone: np.ndarray, pools: list[WorkerPool]) -> None:
    np.testing.assert_array_equal(fit(1).predict(rows()[0]), alone)
    assert not pools


def test_by_default_workers_start_where_they_pay_off(
    alone: np.ndarray, pools: list[WorkerPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tabnsm.training.jobs.thread_count", lambda: 2)
    monkeypatch.setattr("tabnsm.training.jobs.MIN_SECONDS", 1e9)
    assert np.array_equal(fit(None).predict(rows()[0]), alone)
    assert not pools
    monkeypatch.setattr("tabnsm.training.jobs.MIN_SECONDS", 0.0)
    assert np.array_equal(fit(None).predict(rows()[0]), alone)
    assert len(pools) == 1


def test_everything_that_a_table_may_have_reaches_the_workers() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "number": rng.normal(size=200),
            "first": rng.normal(size=200),
            "second": rng.normal(size=200),
            "kind": rng.choice(["a", "b", "c"], 200),
            "text": [f"some words {k % 90} and {k}" for k in range(200)],
        }
    )
    table.loc[::9, "number"] = np.nan
    y = 50 * table["first"] + 50 * table["second"] + (table["kind"] == "a")
    weight = rng.uniform(0.5, 2.0, 200)
    predictions = []
    for n_jobs in (1, 2):
        encoder = FakeTextEncoder()
        model = TabNSMRegressor(**SMALL, n_ensemble=2, n_jobs=n_jobs, text_encoder=encoder)
        predictions.append(model.fit(table, y, sample_weight=weight).predict(table))
    np.testing.assert_array_equal(*predictions)
    assert model.target_.has_linear_fit


@contextmanager
def odd_torch() -> Iterator[None]:
    precision, n_threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    torch.set_float32_matmul_precision("medium")
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(2)
    try:
        with torch.device("meta"), torch.no_grad():
            yield
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(n_threads)


def test_workers_have_the_settings_of_torch_that_the_fit_has() -> None:
    with odd_torch():
        one, two = (fit(n_jobs, n_ensemble=2).predict(rows()[0]) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_fit_outside_the_main_thread_has_workers(alone: np.ndarray) -> None:
    found: list[TabNSMRegressor] = []
    thread = threading.Thread(target=lambda: found.append(fit(2)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0].predict(rows()[0]), alone)


def test_a_killed_worker_costs_time_and_nothing_else(
    alone: np.ndarray, pools: list[WorkerPool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(self: WorkerPool, message: dict[str, Any]) -> None:
        for process_id in self.process_ids:
            os.kill(process_id, signal.SIGKILL)

    monkeypatch.setattr(WorkerPool, "_report", kill)  # at its first epoch
    wait_for_the_workers(monkeypatch)
    message = r"A worker process was killed by SIGKILL in network 2 of 3, which is trained again"
    with pytest.warns(TabNSMWarning, match=message) as caught:
        model = fit(2)
    assert len(caught) == 1
    assert Path(caught[0].filename).name == Path(__file__).name
    np.testing.assert_array_equal(model.predict(rows()[0]), alone)
    assert all(is_gone(process_id) for process_id in pools[0].process_ids)


def test_a_worker_that_does_not_start_is_reported(
    alone: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tabnsm.training.workers._PROGRAM", "raise SystemExit(3)")
    wait_for_the_workers(monkeypatch)
    with pytest.warns(TabNSMWarning, match=r"A worker process ended with status 3; its networks"):
        model = fit(2)
    np.testing.assert_array_equal(model.predict(rows()[0]), alone)


def test_without_room_for_the_table_this_process_trains_alone(
    alone: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(prepared: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tabnsm.training.workers.write_fit", full)
    with pytest.warns(TabNSMWarning, match=r"could not be started \(.*No space left"):
        model = fit(2)
    np.testing.assert_array_equal(model.predict(rows()[0]), alone)


def wait_for_the_workers(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None = None
) -> None:
    """Let workers do all that they will before the second epoch of this process."""
    train, epoch = EnsembleTraining.train, Trainer.train_epoch
    running: list[EnsembleTraining] = []

    def noted(self: EnsembleTraining, *arguments: Any) -> None:
        running.append(self)
        train(self, *arguments)

    def late(self: Trainer, state: Any) -> None:
        if len(state.history) == 1:
            for thread in running[-1].pool._threads:
                thread.join()
            if error is not None:
                raise error
        epoch(self, state)

    monkeypatch.setattr(EnsembleTraining, "train", noted)
    monkeypatch.setattr(Trainer, "train_epoch", late)


def test_ctrl_c_keeps_what_the_workers_have_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit(1)
    wait_for_the_workers(monkeypatch, KeyboardInterrupt())
    message = "interrupted in network 1 of 3, which is left out; the model has the 2 that are"
    with pytest.warns(TabNSMWarning, match=message):
        model = fit(2)
    assert model.histories_[-1].stop_reason.endswith("interrupted: 2 of 3 networks trained")
    for kept, same in zip(networks_of(model.model_), networks_of(whole.model_)[1:], strict=True):
        assert all(torch.equal(kept.state_dict()[k], v) for k, v in same.state_dict().items())


def test_the_time_limit_holds_for_workers() -> None:
    started = time.monotonic()
    model = fit(2, max_epochs=10**6, patience=10**6, time_limit=4.0)
    assert len(model.histories_) == 1
    assert model.history_.stop_reason == "time_limit=4 s reached: 1 of 3 networks trained"
    assert time.monotonic() - started < 60


def test_warnings_of_workers_come_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A checkpoint that can no longer be written is reported by the process that writes it."""
    report = WorkerPool._report

    def blocked(self: WorkerPool, message: dict[str, Any]) -> None:
        path = tmp_path / "checkpoint-2.safetensors"
        if path.is_file():
            path.unlink()
            (path / "in the way").mkdir(parents=True)
        report(self, message)

    monkeypatch.setattr(WorkerPool, "_report", blocked)
    wait_for_the_workers(monkeypatch)
    with pytest.warns(TabNSMWarning) as caught:
        fit(2, n_ensemble=2, max_epochs=30, checkpoint_dir=tmp_path)
    said = [str(warning.message) for warning in caught]
    assert [bool(re.search(r"checkpoint-2\.safetensors could not", text)) for text in said] == [
        True
    ]


SCRIPT = """
import sys
import numpy as np
from tabnsm import TabNSMRegressor
X = np.random.default_rng(0).normal(size=(160, 4))
model = TabNSMRegressor(d_token=8, head_width=8, max_epochs=int(sys.argv[1]), patience=10**6,
                        n_ensemble=3, n_jobs=3, verbose=2, random_state=0,
                        checkpoint_dir=sys.argv[2])
model.fit(X, X[:, 0] * X[:, 1], resume=True)
print("KEPT", model.history_.stop_reason, model.predict(X).tobytes().hex())
"""


@contextmanager
def script(tmp_path: Path, n_epochs: int, folder: str) -> Iterator[subprocess.Popen[str]]:
    """A script without `if __name__ == "__main__"`, in a process group of its own."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "temporary").mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), str(n_epochs), str(tmp_path / folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for_epochs(process: subprocess.Popen[str]) -> None:
    """Read until a worker and the process itself have shown an epoch."""
    assert process.stderr is not None
    seen: set[str] = set()
    for line in process.stderr:
        seen |= set(re.findall(r"^([123])/3  epoch +[2-9]", line))
        if len(seen) == 3:
            return
    raise AssertionError("the script ended")


def wait_until_gone(group: int) -> None:
    for _ in range(600):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("some process of the group is left")


def test_ctrl_c_in_a_terminal_keeps_the_first_network(tmp_path: Path) -> None:
    with script(tmp_path, 10**6, "run") as process:
        wait_for_epochs(process)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=120)
        wait_until_gone(process.pid)
    assert out.startswith("KEPT interrupted: 1 of 3 networks trained")
    assert errors.count("Training was interrupted in epoch") == 1
    assert "Traceback" not in errors
    assert not list((tmp_path / "temporary").iterdir())
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {f"checkpoint{k}.safetensors" for k in ("", "-2", "-3")}


def test_after_a_kill_nothing_is_left_and_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    with script(tmp_path, 20, "killed") as process:
        wait_for_epochs(process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        wait_until_gone(process.pid)
    assert not list((tmp_path / "temporary").iterdir())
    lines = []
    for folder in ("killed", "whole"):
        with script(tmp_path, 20, folder) as process:
            lines.append(process.communicate(timeout=300)[0])
    assert lines[0] == lines[1]
    assert lines[0].startswith("KEPT max_epochs=20 reached")


def test_names_of_causes_and_categories() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        process.terminate()
        assert _cause(process) == "was killed by SIGTERM"
    assert warning_class("RuntimeWarning") is RuntimeWarning
    assert warning_class("TabNSMWarning") is TabNSMWarning
    assert warning_class("print") is warning_class("SomeWarning") is UserWarning
