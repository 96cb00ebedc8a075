"""Fixtures of the benchmark's tests; the library's has a cache of texts for each test."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import _own_text_cache  # noqa: F401

DATA_DIR = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real tables; tests that need it skip, saying so, when it is not there."""
    if not DATA_DIR.is_dir():
        pytest.skip("real tables are not available (../shared/data)")
    return DATA_DIR


@pytest.fixture
def table_dir(tmp_path: Path) -> Path:
    """A data folder with one table of numbers, described by a sidecar."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    frame["y"] = 2 * frame["a"] - frame["b"] + rng.normal(0, 0.1, 200)
    folder = tmp_path / "data"
    folder.mkdir()
    frame.to_csv(folder / "toy.csv", index=False)
    (folder / "toy.json").write_text('{"name": "toy", "target": "y", "drop": ["c"]}')
    return folder


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the runner's processes find the toy methods; gives the diary of their fits."""
    here = str(Path(__file__).parent)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", here if not before else f"{here}{os.pathsep}{before}")
    monkeypatch.setenv("TOY_DIARY", str(tmp_path / "diary"))
    monkeypatch.setenv("TOY_CURE", str(tmp_path / "cure"))
    monkeypatch.setenv("TOY_CHILD", str(tmp_path / "child"))
    return tmp_path / "diary"
