from __future__ import annotations

import builtins
from typing import Any

import pytest

from tabnsm.errors import MissingExtraError
from tabnsm.training.history import EpochRecord, History

RECORDS = [
    EpochRecord(1, 0.5, 3.0, 1e-3, 0.25, False, 2.0, 3.0),
    EpochRecord(2, 0.4, 2.0, 1e-3, 0.5, True, 2.5, 2.0),
]


def test_round_trip() -> None:
    history = History(list(RECORDS), 2, "max_epochs=2 reached", "mae")
    assert History.from_dict(history.to_dict()) == history
    assert history.seconds == 0.5
    assert History().seconds == 0


def test_histories_of_earlier_versions_watched_rmse() -> None:
    names = ("epoch", "train_loss", "validation_rmse", "learning_rate", "seconds", "refreshed")
    epochs = [{name: getattr(record, name) for name in names} for record in RECORDS]
    history = History.from_dict({"epochs": epochs, "best_epoch": 2, "stop_reason": ""})
    assert history.eval_metric == "rmse"
    assert history.metric_of(history.best) == 2.0
    assert history.best.score is None
    assert history.to_frame()["validation_mae"].isna().all()


def test_the_metric_is_the_one_that_was_watched() -> None:
    assert History(list(RECORDS), 1, "", "mae").metric_of(RECORDS[1]) == 2.5
    assert History(list(RECORDS), 1, "", "rmse").metric_of(RECORDS[1]) == 2.0


def test_as_a_frame() -> None:
    frame = History(list(RECORDS), 2).to_frame()
    assert list(frame["epoch"]) == [1, 2]
    assert list(frame["validation_mae"]) == [2.0, 2.5]
    assert list(frame["is_best"]) == [False, True]
    assert frame["refreshed"].dtype == bool
    assert list(History().to_frame().columns) == list(frame.columns)


def test_a_missing_pandas_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[pandas\]"'):
        History(list(RECORDS), 2).to_frame()
