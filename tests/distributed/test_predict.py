"""Checks of `distributed.predict` before a cluster starts, and the columns of a worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.distributed.predict import Predictor, predict
from tabnsm.errors import InvalidOptionError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    return frame.assign(y=frame.a + rng.normal(size=40), num=frame.b + rng.normal(size=40))


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> TabNSMRegressor:
    """Of two targets."""
    options: dict[str, Any] = {"preset": "fast", "max_epochs": 1, "random_state": 0}
    return TabNSMRegressor(**options).fit(table[["a", "b"]], table[["y", "num"]])


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a cluster is started."""
    monkeypatch.setattr(sys.modules[Predictor.__module__], "cluster", None)


def worker(model: TabNSMRegressor, keep: tuple[str, ...]) -> Predictor:
    """A worker that got its model without Ray."""
    found = Predictor.__new__(Predictor)
    found.model, found.keep = model, keep
    return found


def test_kept_columns_stay_beside_the_predictions(
    model: TabNSMRegressor, table: pd.DataFrame
) -> None:
    found = worker(model, ("y",))(pa.Table.from_pandas(table)).to_pandas()
    assert list(found) == ["y", "prediction_y", "prediction_num"]
    assert np.array_equal(found["y"], table["y"])
    assert np.array_equal(found[["prediction_y", "prediction_num"]], model.predict(table))


@pytest.mark.usefixtures("no_cluster")
def test_a_kept_column_with_the_name_of_a_prediction(
    model: TabNSMRegressor, table: pd.DataFrame, tmp_path: Path
) -> None:
    table.assign(prediction_y=1.0).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidOptionError, match="keep must not name a column of the predictions"):
        predict(model, tmp_path / "t.parquet", tmp_path / "out", keep=["prediction_y"])
    with pytest.raises(InvalidOptionError, match="keep must be a sequence of names, got 'y'"):
        predict(model, tmp_path / "t.parquet", tmp_path / "out", keep="y")
