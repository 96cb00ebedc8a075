from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.threads import map_in_threads, one_torch_thread, thread_count, uses_own_threads


@pytest.fixture(params=[1, 3])
def n_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("n_items", [0, 1, 2, 20])
def test_results_come_in_order_and_torch_runs_on_one_thread(n_threads, n_items):
    seen = []

    def work(item: int) -> int:
        seen.append(torch.get_num_threads())
        return item * item

    assert map_in_threads(work, range(n_items)) == [item * item for item in range(n_items)]
    assert seen == [1] * n_items


def test_the_callers_and_later_threads_keep_their_number(n_threads):
    map_in_threads(lambda item: None, [1, 2, 3])
    found = [torch.get_num_threads()]
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert found == [n_threads, n_threads]


def test_an_error_reaches_the_caller_and_no_thread_is_left(n_threads):
    before = threading.active_count()
    done = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError("item 1")
        done.append(item)

    with pytest.raises(ValueError, match="item 1"):
        map_in_threads(work, range(200))
    assert threading.active_count() == before
    assert len(done) < 200
    assert torch.get_num_threads() == n_threads


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_late_threads_do_not_delay_the_others():
    """Items are done before every thread has begun: now and then, and more so on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for _ in range(1000):
            assert map_in_threads(lambda item: item + 1, range(20)) == list(range(1, 21))
    finally:
        torch.set_num_threads(before)


def test_blocks_can_be_nested_and_shared_by_threads(n_threads):
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with one_torch_thread():
            inside.set()
            leave.wait()

    other = threading.Thread(target=hold)
    other.start()
    inside.wait()
    with one_torch_thread(), one_torch_thread():
        assert (torch.get_num_threads(), thread_count()) == (1, n_threads)
    leave.set()
    other.join()
    with one_torch_thread():
        assert (torch.get_num_threads(), thread_count()) == (1, n_threads)
        assert uses_own_threads()
    assert (torch.get_num_threads(), uses_own_threads()) == (n_threads, False)


def test_an_error_gives_the_threads_back(n_threads):
    with pytest.raises(ValueError, match="stop"), one_torch_thread():
        raise ValueError("stop")
    assert torch.get_num_threads() == n_threads


def _fit(n_threads: int) -> np.ndarray:
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        X = np.random.default_rng(0).normal(size=(2000, 60))
        model = TabNSMRegressor(max_epochs=1, batch_size=256, random_state=0)
        return model.fit(X, X[:, 0] * X[:, 1]).predict(X)
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_the_bits_of_a_fit_do_not_depend_on_the_number_of_threads():
    assert np.array_equal(_fit(1), _fit(3))


FIT = """
import os, sys
import numpy as np, torch
from tabnsm import TabNSMRegressor
torch.set_num_threads(2)
X = np.random.default_rng(0).normal(size=(2000, 40))
y = X[:, 0] * X[:, 1]
def make():
    return TabNSMRegressor(max_epochs=1, n_ensemble=1, random_state=0).fit(X, y)
"""

NO_SPINNING = (
    FIT
    + """
import time
import pyarrow  # starts a thread that sleeps; a fit imports it
def count():
    return len(os.listdir("/proc/self/task"))
before = count()
make().predict(X)
for _ in range(100):  # a thread that has ended is listed for a moment longer
    if count() == before:
        break
    time.sleep(0.1)
print(count() - before)
"""
)

FORK = (
    FIT
    + """
import multiprocessing
path = sys.argv[1]
if not os.path.exists(path):
    make().save(path)
if sys.argv[2] == "load":
    model = TabNSMRegressor.load(path)
else:
    model = make()
expected = model.predict(X) if sys.argv[2] == "fit" else None
(torch.randn(3000, 300) @ torch.randn(300, 300)).sum()  # torch's own threads are there now
def child(queue):
    queue.put((model.predict(X), model.explain(X[:20]).predictions, make().predict(X)))
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue,))
process.start()
predicted, explained, fitted = queue.get()
process.join()
expected = model.predict(X) if expected is None else expected
assert (predicted == expected).all() and (fitted == expected).all()
assert np.allclose(explained, expected[:20], rtol=1e-4, atol=1e-4)
print("same")
"""
)

SLOW_TO_FREE = """
import os, threading, time
from joblib import Parallel, delayed
from tabnsm.threads import one_torch_thread
local = threading.local()
both = threading.Barrier(2)
class Slow:
    def __init__(self):
        self.thread = threading.get_ident()
    def __del__(self):
        time.sleep(0.5)
        if threading.get_ident() == self.thread:
            os.write(1, b"freed ")
def job():
    local.kept = Slow()  # until the thread ends
    both.wait()  # so that each thread has one job
    with one_torch_thread():
        pass
Parallel(2, backend="threading")(delayed(job)() for _ in range(2))
"""


def _run(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_fit_leaves_no_thread_that_spins():
    assert _run(NO_SPINNING) == "0"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("made_by", ["fit", "load"])
def test_a_forked_process_predicts_explains_and_fits(tmp_path, made_by):
    assert _run(FORK, tmp_path / "model.safetensors", made_by) == "same"


@pytest.mark.slow
def test_the_interpreter_waits_for_threads_of_joblib():
    """A model that such a thread frees while the interpreter shuts down would abort the process."""
    assert _run(SLOW_TO_FREE).split() == ["freed", "freed"]
