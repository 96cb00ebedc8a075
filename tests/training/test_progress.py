"""The time left, of all networks together."""

from __future__ import annotations

import pytest

from tabnsm.training.history import EpochRecord, History
from tabnsm.training.progress import TrainingProgress, seconds_left, show_preparation


def history(n_epochs: int, best_epoch: int, stop_reason: str = "") -> History:
    epochs = [EpochRecord(k, 0.5, 2.0, 1e-3, 2.0 * k, False) for k in range(1, n_epochs + 1)]
    return History(epochs, best_epoch, stop_reason)


def test_networks_side_by_side_share_what_is_left() -> None:
    alone = seconds_left({0: history(4, 4)}, 4, max_epochs=100, patience=6)
    assert alone == 2 * (6 + 3 * 10)
    both = seconds_left({0: history(4, 4), 1: history(4, 4)}, 4, max_epochs=100, patience=6)
    assert both == 2 * (6 + 6 + 2 * 10) / 2


def test_finished_networks_say_how_long_one_takes() -> None:
    histories = {0: history(20, 14, "no better"), 1: history(5, 5)}
    assert seconds_left(histories, 2, max_epochs=100, patience=6) == 2 * 15
    assert seconds_left({0: history(20, 14, "no better")}, 1, 100, 6) == 0


def test_the_limit_of_epochs_bounds_the_estimate() -> None:
    assert seconds_left({0: history(9, 9)}, 1, max_epochs=10, patience=6) == 2


def test_the_bar_counts_all_networks() -> None:
    progress = TrainingProgress(1, max_epochs=10, n_networks=3, patience=4)
    progress.of_network(0)(history(6, 2, "no better"))
    progress.of_network(2)(history(3, 3))
    task = progress.progress.tasks[0]
    assert (task.completed, task.total) == (13, 30)
    assert "network 3/3" in task.description
    assert "left" in task.description


def test_a_fit_begins_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_preparation(0, 1500, 3)
    assert capsys.readouterr().err == ""
    show_preparation(1, 1500, 3)
    assert capsys.readouterr().err == "Preparing 1,500 rows and 3 columns\n"
