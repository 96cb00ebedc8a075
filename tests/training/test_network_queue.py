"""The queue of networks: order, time, and networks that workers give back."""

from __future__ import annotations

import pytest

from tabnsm.training.budget import TimeBudget
from tabnsm.training.history import EpochRecord, History
from tabnsm.training.network_queue import NetworkQueue, is_finished


def history(seconds: float, stop_reason: str = "") -> History:
    return History([EpochRecord(1, 0.5, 2.0, 1e-3, seconds, False)], 1, stop_reason)


def test_a_network_that_comes_back_is_the_next() -> None:
    queue = NetworkQueue(4, TimeBudget(None))
    assert [queue.take_for_worker(), queue.take_here()] == [(0, None), 1]
    queue.give_back(0)
    assert (queue.take_here(), queue.n_away, queue.begun) == (0, 0, {0, 1})
    queue.close()
    assert queue.take_here() is queue.take_for_worker() is None


def test_workers_get_no_network_that_lacks_time() -> None:
    queue = NetworkQueue(4, TimeBudget(100.0))
    taken = queue.take_for_worker()  # nobody knows how long one takes
    assert taken is not None
    assert taken[1] == pytest.approx(100.0, abs=5)
    queue.count(history(50.0))
    assert queue.take_for_worker() is not None
    queue.count(history(500.0))
    assert queue.take_for_worker() is None
    assert queue.is_out_of_time
    assert (queue.n_left, queue.n_away) == (0, 2)
    queue.come_home(0)
    assert queue.n_away == 1


def test_resumed_seconds_count_once_for_all_jobs() -> None:
    resumed = {0: history(40.0), 1: history(40.0, "max_epochs=1 reached")}
    queue = NetworkQueue(2, TimeBudget(100.0), n_jobs=2, resumed=resumed)
    queue.count(history(1000.0))
    assert queue.take_for_worker() is None  # 960 s to go
    queue = NetworkQueue(2, TimeBudget(100.0), n_jobs=2, resumed=resumed)
    assert queue.take_here() == 0
    queue.charge(resumed[0])
    queue.count(history(1000.0))
    taken = queue.take_for_worker()
    assert taken is not None  # finished: it only has to be read
    assert taken[1] == pytest.approx(60.0, abs=5)


def test_which_networks_are_finished() -> None:
    reasons = ["", "interrupted", "time_limit=2 s reached", "max_epochs=4 reached"]
    assert [is_finished(history(1.0, reason)) for reason in reasons] == [False] * 3 + [True]
