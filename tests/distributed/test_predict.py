"""Checks of `distributed.predict` before a cluster starts, and the columns of a worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.distributed.predict import Predictor, predict
from tabnsm.errors import InvalidDataError, InvalidOptionError, TabNSMError


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


@pytest.mark.usefixtures("no_cluster")
def test_a_dataset_that_cannot_be_used(
    model: TabNSMRegressor, table: pd.DataFrame, tmp_path: Path
) -> None:
    table.to_parquet(tmp_path / "t.parquet")
    table.drop(columns="b").to_parquet(tmp_path / "less.parquet")
    table.to_feather(tmp_path / "t.feather")
    for dataset, message in {
        "less.parquet": "less.parquet has no column 'b'",
        "le*.parquet": "has no column 'b'",
        "none": "matches no file",
        "t.feather": "dataset must be one or several paths or URIs of Parquet files, got .*feather",
    }.items():
        with pytest.raises((InvalidDataError, InvalidOptionError), match=message):
            predict(model, tmp_path / dataset, tmp_path / "out")
    for wrong in (pa.dataset.dataset(tmp_path / "t.parquet"), [], "", [3]):
        with pytest.raises(InvalidOptionError, match="dataset must be one or several paths"):
            predict(model, wrong, tmp_path / "out")
    with pytest.raises(InvalidOptionError, match="keep must name columns of dataset, got 'z'"):
        predict(model, tmp_path / "t*.parquet", tmp_path / "out", keep=["z"])
    with pytest.raises(TabNSMError, match=r"none\.safetensors"):
        predict(tmp_path / "none.safetensors", tmp_path / "t.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()
