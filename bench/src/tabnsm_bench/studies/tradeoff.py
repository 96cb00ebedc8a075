"""Accuracy against cost over methods: the data of the bubble chart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tabnsm_bench.studies.study import (
    FIT_SECONDS,
    PEAK_MEMORY,
    PREDICT_SECONDS,
    RMSE,
    Measure,
    Scope,
    Study,
)
from tabnsm_bench.studies.table import StudyTable
from tabnsm_bench.studies.thresholds import method_variants, preset_variants

N_PARAMETERS = Measure("n_parameters", "parameters", "settings.n_parameters", ",.0f")
PEERS = (
    "linear-regression",
    "ridge",
    "knn-5",
    "random-forest",
    "extratrees",
    "catboost",
    "lightgbm",
    "xgboost",
    "mlp",
    "resnet",
    "tabm",
    "realmlp",
    "ft-transformer",
)


class TradeoffStudy(Study):
    """A study that also puts each method in one place over all datasets."""

    def table(self, results: Iterable[Mapping[str, Any]], scope: Scope) -> StudyTable:
        """Error, time and memory of each method; see `Study.table`."""
        table = super().table(results, scope)
        facts = {"bubbles": bubbles(table.rows)}
        note = (
            "A bubble is a method's error over the best on the same dataset, its seconds and its "
            "memory, as geometric means over the datasets where all shown methods finished."
        )
        return replace(table, facts=facts, notes=[*table.notes, note])


def bubbles(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry per method: relative error, seconds and memory over datasets.

    Datasets on which a method of the table has no result are left out for all, since means over
    different datasets do not compare. A method that has no result anywhere is left out itself.

    Examples
    --------
    >>> facts = {"dataset": "a", "fit_seconds": 1.0, "predict_seconds": 0.1, "peak_memory_mb": 9.0}
    >>> rows = [{"method": "x", "rmse": 1.0, **facts}, {"method": "y", "rmse": 2.0, **facts}]
    >>> [(entry["method"], entry["relative_rmse"]) for entry in bubbles(rows)]
    [('x', 1.0), ('y', 2.0)]
    """
    done = {(row["method"], row["dataset"]): row for row in rows if row["rmse"] is not None}
    methods = list(dict.fromkeys(method for method, _ in done))
    datasets = [
        name
        for name in dict.fromkeys(row["dataset"] for row in rows)
        if all((method, name) in done for method in methods)
    ]
    best = {name: min(done[method, name]["rmse"] for method in methods) for name in datasets}
    entries = []
    for method in methods if datasets else []:
        found = [done[method, name] for name in datasets]
        entry: dict[str, Any] = {"method": method, "n_datasets": len(datasets)}
        entry["relative_rmse"] = _geometric(
            [row["rmse"] / best[row["dataset"]] if best[row["dataset"]] else None for row in found]
        )
        for key in ("fit_seconds", "predict_seconds", "peak_memory_mb"):
            entry[key] = _geometric([row[key] for row in found])
        entries.append(entry)
    return entries


def _geometric(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or any(value <= 0 or not math.isfinite(value) for value in known):
        return None
    return statistics.geometric_mean(known)


STUDIES = (
    TradeoffStudy(
        "tradeoff",
        "Accuracy against time and memory over methods",
        "accuracy-efficiency trade-off (bubble chart)",
        preset_variants,
        measures=(RMSE, FIT_SECONDS, PREDICT_SECONDS, PEAK_MEMORY, N_PARAMETERS),
        seeds=(0,),
        beside=method_variants,
        peers=PEERS,
    ),
)
