"""Options of `distributed.fit` that cannot be used are refused before Ray starts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tabnsm.distributed.fit import fit, on_cluster
from tabnsm.errors import InvalidDataError, InvalidOptionError


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a cluster is started."""
    monkeypatch.setattr(sys.modules[on_cluster.__module__], "cluster", None)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 3.0]}).to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "q"}, "target must name a column of the dataset, got 'q'"),
        ({"target": ["y", "y"]}, "target must name different columns"),
        ({"sample_weight": "q"}, "sample_weight must name a column of the dataset, got 'q'"),
        ({"dataset": "no/such/folder"}, "matches no file"),
        ({"dataset": ""}, "A dataset must be the path of files, got ''"),
        ({"X_val": "no/such/folder", "y_val": "y"}, "matches no file"),
        ({"y_val": "qq"}, "y_val must name a column of the dataset, got 'qq'"),
        ({"cpus_per_worker": -1}, "cpus_per_worker must be a number > 0, got -1"),
        ({"cpus_per_worker": "x"}, "cpus_per_worker must be a number > 0, got 'x'"),
        ({"storage_path": "/proc/no/such/folder"}, "storage_path must be a folder or URI"),
        ({"max_epochs": 0}, "max_epochs must be"),
    ],
)
def test_refused_before_ray_starts(data: Path, options: dict[str, Any], message: str) -> None:
    chosen = {"dataset": data, "target": "y", "preset": "fast"} | options
    if "y_val" in options:
        chosen.setdefault("X_val", data)
    with pytest.raises((InvalidDataError, InvalidOptionError), match=message):
        fit(**chosen)


def test_a_table_in_memory(data: Path) -> None:
    frame = pd.read_parquet(data)
    with pytest.raises(InvalidOptionError, match="target must name different columns"):
        fit(frame, ["y", "y"])
    with pytest.raises(InvalidOptionError, match="must name columns of dataset, got 'q'"):
        fit(frame, "q")
