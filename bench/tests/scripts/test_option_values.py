from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.scripts.option_values import RESULTS, STUDIES, Study, earlier_batch, fit, fixed, page


@pytest.mark.parametrize("name", STUDIES)
def test_the_pages_tables_are_of_the_results(name: str) -> None:
    assert page(name) in (RESULTS.parents[2] / "docs" / "suite.md").read_text()


def test_batches_were_a_share_of_the_rows() -> None:
    assert [earlier_batch(n) for n in (100, 741, 10**6)] == [16, 24, 256]


@pytest.mark.slow
def test_variants_are_compared_on_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = {"first": fixed(), "slow": fixed(learning_rate=1e-5, max_epochs=2)}
    monkeypatch.setitem(STUDIES, "made", Study(variants, ["made"], n_networks=2))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60), "c": 1.0})
    frame.assign(y=frame["a"] + frame["b"]).to_parquet(tmp_path / "made.parquet")
    (tmp_path / "made.json").write_text(json.dumps({"target": "y", "drop": ["c"]}))
    fit("made", tmp_path, ["made"], tmp_path)
    path = tmp_path / "made" / "made.json"
    runs = json.loads(path.read_text())
    assert all(len(values) == 2 for values in runs["first"].values())
    assert runs["slow"]["epochs"] == [2, 2]
    ratio = runs["slow"]["means"][-1] / runs["first"]["means"][-1]
    assert ratio > 1
    assert f"| {ratio:.4f} ±" in page("made", tmp_path)
    written = path.read_bytes()
    fit("made", tmp_path, ["made"], tmp_path)  # finished: nothing is run again
    assert path.read_bytes() == written
