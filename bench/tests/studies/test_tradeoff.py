"""The bubble chart's data."""

from __future__ import annotations

import pytest

from bench.tests.studies.results import done
from tabnsm_bench.studies import Scope, find_study
from tabnsm_bench.studies.tradeoff import bubbles


def test_methods_in_one_place_over_datasets() -> None:
    scope = Scope(("a", "b", "c"), (0,))
    study = find_study("tradeoff").against(["ridge", "catboost", "knn-5"])
    error = {
        ("a", "tabnsm-default"): 1.0,
        ("a", "ridge"): 2.0,
        ("a", "catboost"): 4.0,
        ("b", "tabnsm-default"): 30.0,
        ("b", "ridge"): 15.0,
        ("b", "catboost"): 15.0,
        ("c", "ridge"): 0.001,  # the others did not finish on c
    }
    seconds = {"tabnsm-default": 8.0, "ridge": 0.5, "catboost": 2.0}
    results = [
        done(spec, error[spec.dataset, spec.method], fit_seconds=seconds[spec.method])
        for spec in study.all_specs(scope)
        if (spec.dataset, spec.method) in error
    ]
    table = study.table(results, scope)
    found = {entry["method"]: entry for entry in table.facts["bubbles"]}
    assert set(found) == {"tabnsm-default", "ridge", "catboost"}  # knn-5 has no result at all
    assert found["tabnsm-default"]["relative_rmse"] == pytest.approx(2**0.5)
    assert found["ridge"]["relative_rmse"] == pytest.approx(2**0.5)
    assert found["catboost"]["relative_rmse"] == pytest.approx(2.0)
    assert found["catboost"]["fit_seconds"] == pytest.approx(2.0)
    assert found["ridge"]["n_datasets"] == 2
    assert found["ridge"]["peak_memory_mb"] == pytest.approx(300.0)


def test_nothing_in_common_gives_no_bubble() -> None:
    row = {"fit_seconds": 1.0, "predict_seconds": 1.0, "peak_memory_mb": 1.0}
    rows = [
        {"dataset": "a", "method": "x", "rmse": 1.0, **row},
        {"dataset": "a", "method": "y", "rmse": None, **row},
        {"dataset": "b", "method": "y", "rmse": 1.0, **row},
        {"dataset": "b", "method": "x", "rmse": None, **row},
    ]
    assert bubbles(rows) == []


def test_an_exact_method_has_no_relative_error() -> None:
    row = {"fit_seconds": 1.0, "predict_seconds": 1.0, "peak_memory_mb": 1.0}
    (entry,) = bubbles([{"dataset": "a", "method": "x", "rmse": 0.0, **row}])
    assert entry["relative_rmse"] is None
