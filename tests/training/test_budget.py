from __future__ import annotations

import math

import pytest

from tabnsm.training import budget
from tabnsm.training.budget import TimeBudget


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_seconds_run_down_to_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(budget, "clock", clock.monotonic)
    limited = TimeBudget(10.0)
    clock.now = 104.0
    assert limited.seconds_left() == 6
    limited.charge(4.0)  # of a run that is resumed
    assert limited.seconds_left() == 2
    clock.now = 200.0
    assert limited.seconds_left() == 0


def test_what_is_reserved_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "clock", Clock().monotonic)
    limited = TimeBudget(10.0)
    with limited.reserved(3.0):
        assert limited.seconds_left() == 7
    assert limited.seconds_left() == 10


def test_without_a_limit_there_is_no_end() -> None:
    unlimited = TimeBudget(None)
    unlimited.charge(1e9)
    with unlimited.reserved(1e9):
        assert not unlimited.is_limited
    assert unlimited.seconds_left() == math.inf
