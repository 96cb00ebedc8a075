from __future__ import annotations

import threading

import pytest
import torch

from tabnsm.preprocessing.threads import map_in_threads


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


@pytest.mark.timeout(300)
def test_threads_that_come_late_hold_nobody_up():
    """Items are done before every thread has begun: now and then, and more so on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        for _ in range(1000):
            assert map_in_threads(lambda item: item + 1, range(20)) == list(range(1, 21))
    finally:
        torch.set_num_threads(before)
