from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tabnsm.errors import InvalidDataError
from tabnsm_bench.cli import app
from tabnsm_bench.intervals import methods, study, tables
from tabnsm_bench.intervals.page import fill_page
from tabnsm_bench.intervals.scores import LEVELS, QUANTILES, interval_scores
from tabnsm_bench.suite.tables import SHARED, SuiteTable

ROOT = Path(__file__).resolve().parents[3]
RESULTS, PAGE = ROOT / "bench/results/studies/intervals", ROOT / "bench/docs/intervals.md"
TERCILES = {"by_width": [0.9, 0.9, 0.9], "by_prediction": [0.8, 0.9, 1.0]}


def put(results: Path, method: str, name: str, split: int, width: float) -> None:
    entries = [{"level": x, "coverage": x, "width": width, **TERCILES} for x in LEVELS]
    run = {"method": method, "table": name, "split": split, "pinball": width, "intervals": entries}
    path = study.result_path(results, method, name, split)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run))


def test_scores_of_exact_quantiles() -> None:
    truth = np.random.default_rng(0).permutation(np.linspace(0, 1, 3001))
    found = interval_scores(truth, {q: np.full(3001, q) for q in QUANTILES})
    assert found["crossed_rows"] == 0
    for entry in found["intervals"]:
        assert entry["coverage"] == pytest.approx(entry["level"], abs=0.002)
        assert entry["width"] == pytest.approx(entry["level"] * 12**0.5, rel=1e-3)
        assert len(entry["by_width"]) == len(entry["by_prediction"]) == 3
    shifted = interval_scores(truth, {q: np.full(3001, min(1.0, q + 0.1)) for q in QUANTILES})
    assert shifted["pinball"] > found["pinball"]


def test_page_shows_ratios_of_common_splits(tmp_path: Path) -> None:
    put(tmp_path, "tabnsm", "sarcos", 0, 1.0)
    put(tmp_path, "tabnsm", "sarcos", 1, 9.0)
    put(tmp_path, "catboost-mapie", "sarcos", 0, 2.0)
    marks = "<!-- intervals: {} -->\n<!-- end of intervals -->\n"
    page = fill_page("".join(map(marks.format, ("ratios", "coverage", "terciles"))), tmp_path)
    assert "| sarcos | 1 | 0.500 |" in page
    assert "| sarcos | TabNSM | 2 | 50.0% | 80.0% | 90.0% | 95.0% |" in page
    assert "| all | CatBoost and MAPIE | 90.0% | 90.0% | 90.0% | 80.0% | 90.0% | 100.0% |" in page
    assert fill_page(page, tmp_path) == page
    with pytest.raises(InvalidDataError, match="must have"):
        fill_page("nothing", tmp_path)


def test_the_page_is_that_of_the_results() -> None:
    assert fill_page(PAGE.read_text(), RESULTS) == PAGE.read_text()


@pytest.mark.slow
def test_both_methods_run_and_are_skipped_when_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(700, 3)), columns=["a", "b", "c"])
    frame["city"] = rng.choice(["Oslo", "Rome"], 700)
    frame["cost"] = frame["a"] + rng.normal(size=700)
    frame.to_parquet(tmp_path / "made.parquet")
    (tmp_path / "made.json").write_text("{}")
    monkeypatch.setitem(tables.TABLES, "made", SuiteTable(SHARED, "made", "cost"))
    monkeypatch.setitem(methods.TABNSM_OPTIONS, "max_epochs", 2)
    monkeypatch.setitem(methods.CATBOOST_OPTIONS, "iterations", 20)
    results = tmp_path / "results"
    words: list[Any] = ["intervals", "run", "--tables", "made", "--splits", "1"]
    words += ["--shared", tmp_path, "--results", results]
    first = CliRunner().invoke(app, [str(word) for word in words])
    assert first.exit_code == 0, first.output
    assert "catboost-mapie made split 1" in first.output
    again = CliRunner().invoke(app, [str(word) for word in words])
    assert again.output == ""
    for method in methods.METHODS:
        run = json.loads(study.result_path(results, method, "made", 1).read_text())
        assert run["n_test"] == 140
        assert run["intervals"][2]["coverage"] > 0.7
