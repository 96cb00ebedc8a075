"""Targets' shapes, and temperatures that suit them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.tests.studies.results import done
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.studies import Scope, find_study
from tabnsm_bench.studies.targets import behaviour, target_shape


def test_the_paper_s_figures_for_cp(data_dir: Path) -> None:
    shape = target_shape(pd.read_parquet(data_dir / "cpu_small.parquet")["usr"])
    assert round(shape["std"], 2) == 18.40
    assert round(shape["iqr"], 2) == 13.00
    assert round(shape["iqr_over_std"], 2) == 0.71
    assert shape["excess_kurtosis"] > 3  # "heavy-tailed"


@pytest.mark.parametrize(
    ("errors", "shown"),
    [
        ([5, 4, 3.99, 3], "falls"),
        ([1, 1.001, 2], "rises"),
        ([3, 1, 2, 2.01], "best inside"),
        ([3, 1, 2, 1], "several turns"),
        ([1, 2, 1], "several turns"),
        ([1.0, 1.004, 1.0], "flat"),
    ],
)
def test_shapes_of_curves(errors: list[float], shown: str) -> None:
    assert behaviour(errors) == shown


def test_best_temperature_beside_each_target(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    best = {"a": 0.1, "b": 1.0, "c": 10.0}
    for name, tail in (("a", 3), ("b", 2), ("c", 1)):  # the longer the tail, the lower IQR/std
        y = rng.normal(size=300) ** (2 * tail - 1)
        pd.DataFrame({"x": rng.normal(size=300), "y": y}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    scope = Scope(tuple(best), (0,), "paper", {"target": "y"}, tmp_path)
    study = find_study("temperature-by-target")
    results = []
    for spec in study.all_specs(scope):
        temperature = spec.method_options.get("temperature", 1.0)
        error = 1 + abs(np.log10(temperature / best[spec.dataset]))
        results.append(done(spec, 5.0, validation_rmse=error))
    table = study.table(results, scope)
    assert {row["dataset"]: row["best_temperature"] for row in table.rows} == best
    assert [row["behaviour"] for row in table.rows] == ["rises", "best inside", "falls"]
    assert table.rows[0]["temperatures"] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert table.rows[0]["normalized"][0] == 1.0
    assert table.rows[0]["normalized"][2] == pytest.approx(2.0)
    assert table.facts["spearman"] == pytest.approx(1.0)
    assert "over 3 datasets: 1.00" in table.notes[-1]


def test_the_tables_are_needed() -> None:
    study = find_study("temperature-by-target")
    with pytest.raises(InvalidOptionError, match="data_dir must be given"):
        study.table([], Scope(("a",), (0,)))
