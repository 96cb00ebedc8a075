from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.scripts.snapshots import N_CYCLES, N_NETWORKS, RESULTS, ROWS, fit_table, page


def test_the_pages_table_is_of_the_results() -> None:
    assert page() in (RESULTS.parents[2] / "docs" / "suite.md").read_text()
    assert page().count("\n") == len(ROWS) + 1


@pytest.mark.slow
def test_networks_and_snapshots_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.scripts.snapshots.MAX_ROWS", 50)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": 1.0})
    frame.assign(y=frame["a"] + frame["b"]).to_parquet(tmp_path / "made.parquet")
    (tmp_path / "made.json").write_text(json.dumps({"target": "y", "drop": ["c"]}))
    run = fit_table(tmp_path, "made")
    assert len(run["epochs"]) == N_NETWORKS
    assert run["cycle_epochs"] == N_CYCLES * max(math.ceil(run["best_epoch"] / 3), 3)
    errors = run["rmse"]
    assert set(errors) == set(ROWS)
    assert len(set(errors.values())) > len(errors) // 2  # the means are of different networks
    results = tmp_path / "results.json"
    results.write_text(json.dumps({"made": run}))
    assert f"| {errors['4 networks'] / errors['1 network']:.4f} |" in page(results)
