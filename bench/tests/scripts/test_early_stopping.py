from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from bench.scripts.early_stopping import RESULTS, RULES, fit, page, replay


def test_a_network_that_waits_less_ends_earlier_with_the_best_so_far() -> None:
    scores = [3.0, 2.0, 2.5, 2.4, 1.0, 1.5, 1.5]
    assert replay(scores, lambda best: 3) == (7, 1.0)
    assert replay(scores, lambda best: 2) == (4, 2.0)
    assert replay(scores, lambda best: best) == (4, 2.0)


def test_the_pages_table_is_of_the_results() -> None:
    assert page() in (RESULTS.parents[2] / "docs" / "suite.md").read_text()
    assert page().count("\n") == len(RULES) + 1


@pytest.mark.slow
def test_tables_that_are_done_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.scripts.early_stopping.N_NETWORKS", 2)
    frame = pd.DataFrame({"a": range(40), "y": [float(k % 7) for k in range(40)]})
    frame.to_parquet(tmp_path / "made.parquet")
    (tmp_path / "made.json").write_text(json.dumps({"target": "y"}))
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"done": [[2.0, 1.0]]}))
    fit(tmp_path, ["done", "made"], results)
    found = json.loads(results.read_text())
    assert found["done"] == [[2.0, 1.0]]
    assert len(found["made"]) == 2
    assert page(results).count("|") > 0
