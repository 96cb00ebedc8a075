from __future__ import annotations

from tabnsm.training.early_stopping import ValidationMonitor


def epochs_until_stop(best: int, patience) -> int:
    monitor = ValidationMonitor(patience, scheduler_patience=5)
    scores = [1.0 / (k + 1) for k in range(best)] + [2.0] * 100
    for score in scores:
        monitor.update(score)
        if monitor.should_stop:
            return monitor.epoch
    raise AssertionError("it never stops")


def test_waits_half_as_long_as_it_took_to_the_best_epoch():
    assert epochs_until_stop(4, "auto") == 4 + 5
    assert epochs_until_stop(20, "auto") == 20 + 10
    assert epochs_until_stop(60, "auto") == 60 + 16
    assert epochs_until_stop(4, 16) == 4 + 16


def test_state_is_restored():
    monitor, again = (ValidationMonitor("auto", 2) for _ in range(2))
    for score in (3.0, 2.0, 2.5, 2.6):
        monitor.update(score)
    again.load_state_dict(monitor.state_dict())
    assert (again.epoch, again.best_epoch, again.learning_rate_factor) == (4, 2, 0.5)
