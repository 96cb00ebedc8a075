from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.scripts.ensemble_size import (
    N_NETWORKS,
    RESULTS,
    RULES,
    fit_table,
    page,
    while_gaining,
)


def test_the_pages_table_is_of_the_results() -> None:
    assert page() in (RESULTS.parents[2] / "docs" / "suite.md").read_text()
    assert page().count("\n") == len(RULES) + 1


def test_networks_are_added_while_validation_gains() -> None:
    rule = while_gaining(0.01)
    assert rule([1.0, 0.9, 0.8, 0.799, 0.7]) == 4
    assert rule([1.0, 1.0, 1.0, 0.5]) == 3
    assert rule([1.0, 0.9, 0.8, 0.7]) == 4


@pytest.mark.slow
def test_errors_are_of_the_mean_of_the_first_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.scripts.ensemble_size.MAX_ROWS", 50)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": 1.0})
    frame.assign(y=frame["a"] + frame["b"]).to_parquet(tmp_path / "made.parquet")
    (tmp_path / "made.json").write_text(json.dumps({"target": "y", "drop": ["c"]}))
    run = fit_table(tmp_path, "made")
    assert [len(run[part]) for part in ("epochs", "validation", "test")] == [N_NETWORKS] * 3
    assert len(set(run["test"])) == N_NETWORKS
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"made": run}))
    assert f"| 1 network | {run['epochs'][0] / sum(run['epochs']):.2f} |" in page(results)
