"""The figures of docs/scaling.md are those of the results, and the script still runs."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = ROOT / "bench" / "speed"
    monkeypatch.syspath_prepend(str(folder))
    return importlib.import_module("out_of_core")


def test_the_page_has_the_figures_of_the_results(script: ModuleType) -> None:
    assert script.page() in (ROOT / "docs" / "scaling.md").read_text()


@pytest.mark.slow
def test_a_made_table_can_be_fitted(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = script.make(tmp_path / "data", 600)
    assert pd.read_parquet(tmp_path / "data").shape == (600, made["n_columns"])
    found = script.fit(tmp_path / "data", "target", max_epochs=1, preset="fast")
    assert found["n_epochs"] == 1
    assert found["peak_resident_mb"] > 0
    monkeypatch.setattr(script, "_text_speed", dict)  # which takes longer than all the rest
    compared = script.compare(tmp_path / "data", "target", tmp_path, preset="fast", n_steps=12)
    assert compared["n_rows"] == 600
    assert compared["ratio"] > 0
