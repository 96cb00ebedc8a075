"""Callbacks: what they hear, in one process and from workers, and how they stop a fit."""

from __future__ import annotations

import dataclasses
import sys
import threading
from typing import Any

import numpy as np
import pytest
import torch

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.callbacks import Callback
from tabnsm.training.budget import TimeBudget
from tabnsm.training.callbacks import STOPPED, CallbackList
from tabnsm.training.history import EpochRecord, History
from tabnsm.training.kept import KeptNetworks
from tabnsm.training.network_queue import NetworkQueue

posix = pytest.mark.skipif(sys.platform == "win32", reason="workers are for POSIX systems")
OPTIONS: dict[str, Any] = {"preset": "fast", "max_epochs": 3, "random_state": 0}


class Recorder(Callback):
    """Notes all calls; stops where it is told to."""

    def __init__(self, stop: tuple[Any, ...] | None = None) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.stop = stop
        self.threads: set[int] = set()

    def note(self, *call: Any) -> bool:
        self.calls.append(call)
        self.threads.add(threading.get_ident())
        return call == self.stop

    def on_epoch(self, network: int, history: History) -> bool:
        assert len(history) == history[-1].epoch
        return self.note("epoch", network, len(history))

    def on_network(self, network: int, history: History) -> bool:
        assert history.stop_reason
        return self.note("network", network, len(history))

    def on_end(self, model: Any) -> None:
        self.note("end", len(model.histories_))

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == kind]


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(150, 4))
    return X, X[:, 0] * X[:, 1]


def fit(callbacks: Any = None, **options: Any) -> TabNSMRegressor:
    return TabNSMRegressor(**OPTIONS | options).fit(*rows(), callbacks=callbacks)


@pytest.fixture(scope="module")
def plain() -> np.ndarray:
    return fit(n_ensemble=2, n_jobs=1).predict(rows()[0])


def test_every_event_is_heard_in_order(plain: np.ndarray) -> None:
    recorder, other = Recorder(), Recorder()
    model = fit([recorder, other], n_ensemble=2, n_jobs=1)
    epochs = [("epoch", 1, k) for k in (1, 2, 3)], [("epoch", 2, k) for k in (1, 2, 3)]
    ends = [("network", 1, 3)], [("network", 2, 3), ("end", 2)]
    assert recorder.calls == [*epochs[0], *ends[0], *epochs[1], *ends[1]]
    assert other.calls == recorder.calls
    np.testing.assert_array_equal(model.predict(rows()[0]), plain)


@posix
@pytest.mark.slow
def test_events_of_workers_reach_this_thread(plain: np.ndarray) -> None:
    recorder = Recorder()
    model = fit([recorder], n_ensemble=2, n_jobs=2)
    assert sorted(recorder.of("epoch")) == [(n, k) for n in (1, 2) for k in (1, 2, 3)]
    assert sorted(recorder.of("network")) == [(1, 3), (2, 3)]
    assert recorder.calls[-1] == ("end", 2)
    assert recorder.threads == {threading.get_ident()}
    np.testing.assert_array_equal(model.predict(rows()[0]), plain)


def test_a_stop_keeps_the_first_network() -> None:
    recorder = Recorder(stop=("epoch", 1, 2))
    model = fit([Recorder(), recorder], n_ensemble=3, n_jobs=1, max_epochs=30)
    assert [len(history) for history in model.histories_] == [2]
    assert model.history_.stop_reason == f"{STOPPED}: 1 of 3 networks trained"
    assert recorder.calls[-2:] == [("network", 1, 2), ("end", 1)]
    # The weights are those of a fit that ends there by itself.
    shorter = fit(n_ensemble=1, max_epochs=2)
    np.testing.assert_array_equal(model.predict(rows()[0]), shorter.predict(rows()[0]))


def test_a_stop_after_a_network_keeps_what_is_trained(plain: np.ndarray) -> None:
    model = fit([Recorder(stop=("network", 2, 3))], n_ensemble=4, n_jobs=1)
    assert [len(history) for history in model.histories_] == [3, 3]
    assert model.histories_[1].stop_reason.endswith(f"{STOPPED}: 2 of 4 networks trained")
    np.testing.assert_array_equal(model.predict(rows()[0]), plain)


def test_a_stop_in_the_last_epoch_changes_nothing() -> None:
    model = fit([Recorder(stop=("epoch", 1, 3))], n_ensemble=1)
    assert model.history_.stop_reason == "max_epochs=3 reached"


class StopWhenTwoAreBegun(Recorder):
    """Stops at an epoch of a network, once another one has done an epoch, too."""

    def on_epoch(self, network: int, history: History) -> bool:
        super().on_epoch(network, history)
        return {1, 2} <= {call[0] for call in self.of("epoch")}


@posix
@pytest.mark.slow
def test_a_stop_ends_networks_of_workers_and_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tabnsm.training.kept.MAX_SCORE", 1e9)  # however good they are
    recorder = StopWhenTwoAreBegun()
    options = {"max_epochs": 100_000, "patience": 100_000, "n_jobs": 2, "n_ensemble": 4}
    model = fit([recorder], **options)
    # Without the stop this would take hours. The worker's network came home with its weights.
    reasons = [history.stop_reason for history in model.histories_]
    assert reasons == [STOPPED, f"{STOPPED}: 2 of 4 networks trained"]
    assert recorder.of("network") == [(k + 1, len(model.histories_[k])) for k in (0, 1)]
    assert recorder.calls[-1] == ("end", 2)
    first, second = model.model_.networks
    weights = zip(first.parameters(), second.parameters(), strict=True)
    assert not all(torch.equal(*pair) for pair in weights)


def record(score: float) -> EpochRecord:
    return EpochRecord(1, 0.5, score, 1e-3, 0.1, False, score, score)


@pytest.mark.parametrize(("score", "is_kept"), [(1.0, True), (2.0, False)])
def test_a_network_that_was_stopped_is_kept_if_it_is_good(score: float, is_kept: bool) -> None:
    kept = KeptNetworks(3)
    model: Any = object()
    kept.add(0, "max_epochs=1 reached", model, History([record(1.0)], best_epoch=1))
    assert kept.add(1, STOPPED, model, History([record(score)], best_epoch=1)) is is_kept
    assert not kept.messages


def test_a_network_of_a_lost_worker_is_not_begun_again_after_a_stop() -> None:
    queue = NetworkQueue(2, TimeBudget(None), n_jobs=2)
    assert queue.take_for_worker() == (0, None)
    queue.close()
    queue.give_back(0)
    assert queue.take_here() is None


def test_a_resumed_fit_goes_on_after_a_stop(tmp_path: Any) -> None:
    options = {"n_ensemble": 2, "n_jobs": 1, "checkpoint_dir": tmp_path}
    fit([Recorder(stop=("epoch", 1, 1))], **options)
    recorder = Recorder()
    model = TabNSMRegressor(**OPTIONS | options).fit(*rows(), resume=True, callbacks=[recorder])
    assert recorder.of("epoch") == [(1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    expected = fit(n_ensemble=2, n_jobs=1)
    np.testing.assert_array_equal(model.predict(rows()[0]), expected.predict(rows()[0]))


def test_an_error_ends_the_fit() -> None:
    class Fails(Callback):
        def on_epoch(self, network: int, history: History) -> None:
            raise LookupError("no such run")

    with pytest.raises(LookupError, match="no such run"):
        fit([Fails()])


def test_any_object_with_one_of_the_methods_will_do() -> None:
    class Other:
        n_networks = 0

        def on_network(self, network: int, history: History) -> None:
            self.n_networks += 1

    other = Other()
    fit([other])
    assert other.n_networks == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Recorder(), "callbacks must be a list or None, got"),
        ([Recorder], "callbacks must be objects with a method on_epoch"),
        ([lambda: None], "callbacks must be objects with a method on_epoch"),
    ],
)
def test_what_is_no_callback_is_refused_before_any_work(wrong: Any, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        TabNSMRegressor().fit(None, None, callbacks=wrong)


def test_time_in_callbacks_is_no_time_of_training(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = 0.0
    monkeypatch.setattr("tabnsm.training.budget.clock", lambda: seconds)

    class Slow(Callback):
        def on_epoch(self, network: int, history: History) -> None:
            nonlocal seconds
            seconds += 100.0

    assert fit([Slow()]).history_.seconds == 0.0


def test_answers_are_taken_together() -> None:
    history = History([dataclasses.replace(record(1.0))], best_epoch=1)
    pair = CallbackList([Recorder(stop=("epoch", 1, 1)), Recorder()])
    assert pair.on_epoch(1, history)
    assert not pair.on_epoch(2, history)
    assert all(len(each.calls) == 2 for each in pair.callbacks)
