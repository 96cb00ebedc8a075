"""How many networks are trained side by side, alone and inside joblib's workers."""

from __future__ import annotations

import sys
import time

import joblib
import numpy as np
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.errors import InvalidOptionError
from tabnsm.threads import one_torch_thread
from tabnsm.training import jobs
from tabnsm.training.jobs import (
    can_start_workers,
    check_jobs,
    pays_off,
    requested_jobs,
    side_by_side,
)

CPU = torch.device("cpu")
posix = pytest.mark.skipif(sys.platform == "win32", reason="workers are for POSIX systems")


@pytest.mark.parametrize("wrong", [0, 1.5, "2", True])
def test_a_wrong_number_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidOptionError, match="n_jobs must be None or an integer other than 0"):
        TabNSMRegressor(n_jobs=wrong).fit(np.eye(20), np.arange(20.0))  # type: ignore[arg-type]


def test_numbers_that_are_right() -> None:
    for right in (None, 1, -1, -5, np.int64(3)):
        check_jobs(right)


@posix
def test_the_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(jobs, "thread_count", lambda: 3)
    wanted = {None: 3, 1: 1, 2: 2, 100: 8, -1: 4, -2: 3, -50: 1}
    assert {n: side_by_side(n, 8, CPU) for n in wanted} == wanted
    assert side_by_side(4, 2, CPU) == 2
    assert side_by_side(4, 1, CPU) == 1
    assert side_by_side(4, 8, torch.device("meta")) == 1


@posix
def test_the_number_of_joblibs_context_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    monkeypatch.setattr(jobs, "thread_count", lambda: 3)
    for given, wanted in ((2, 2), (-1, 4), (-2, 3), (1, 1)):
        with joblib.parallel_config(n_jobs=given):
            assert [side_by_side(n, 8, CPU) for n in (None, 3)] == [wanted, 3]
    with joblib.parallel_config(backend="threading"):  # says nothing of their number
        assert side_by_side(None, 8, CPU) == 3


def test_one_job_of_joblib_says_nothing_of_the_jobs_within() -> None:
    call = [joblib.delayed(requested_jobs)(None)]
    assert joblib.Parallel(n_jobs=1)(call) == [None]
    assert joblib.Parallel(n_jobs=2, backend="threading")(call) == [None]


@posix
def test_one_torch_thread_means_one_job_unless_a_number_is_given() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_torch_thread():
            assert [side_by_side(n, 8, CPU) for n in (None, 2)] == [1, 2]
    finally:
        torch.set_num_threads(before)


def test_a_clock_of_this_process_alone_means_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tabnsm.training.budget.clock", time.process_time)
    assert side_by_side(4, 8, CPU) == 1


def test_a_program_that_is_no_python_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "/usr/bin/uwsgi", None):
        monkeypatch.setattr(sys, "executable", name)
        assert not can_start_workers()
        assert side_by_side(4, 8, CPU) == 1


@pytest.mark.slow
def test_jobs_of_joblib_have_their_share_of_the_cores() -> None:
    call = joblib.delayed(side_by_side)
    for backend, most in (("loky", max(joblib.cpu_count() // 2, 1)), ("threading", 1)):
        parallel = joblib.Parallel(n_jobs=2, backend=backend)
        found = parallel(call(n_jobs, 8, CPU) for n_jobs in (None, -1, 8, 8))
        assert max(found) <= most, backend


def test_workers_start_for_work_that_takes_long() -> None:
    epochs = [5.0, 5.5, 6.0]  # the first one says nothing
    assert pays_off(epochs, n_left=1, max_epochs=100, patience=16)
    assert not pays_off(epochs, n_left=0, max_epochs=100, patience=16)
    assert not pays_off(epochs, n_left=2, max_epochs=4, patience=16)
    assert not pays_off(epochs[:1], n_left=7, max_epochs=100, patience=16)
