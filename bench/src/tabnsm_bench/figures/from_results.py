"""Figures over the main results: all methods on all datasets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tabnsm.errors import InvalidDataError
from tabnsm_bench.figures.average_ranks import draw_average_ranks
from tabnsm_bench.figures.bubble import Bubble, draw_bubbles
from tabnsm_bench.figures.critical_difference import draw_critical_difference
from tabnsm_bench.figures.data import FigureData
from tabnsm_bench.figures.rank_heatmap import draw_rank_heatmap
from tabnsm_bench.figures.training_curves import draw_training_curves
from tabnsm_bench.main_runs import dataset_label, main_runs
from tabnsm_bench.naming import display_name, family
from tabnsm_bench.statistics import analyse
from tabnsm_bench.studies.thresholds import curve_of
from tabnsm_bench.studies.tradeoff import bubbles as place_methods

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NO_RUNS = "There are no finished runs{}. Make some with: tabnsm bench run"


def critical_difference(data: FigureData) -> Figure:
    """The critical-difference diagram of the results."""
    table, ours, families = data.named_scores()
    return draw_critical_difference(analyse(table, ours), families)


def average_ranks(data: FigureData) -> Figure:
    """Average ranks of the results."""
    table, ours, families = data.named_scores()
    return draw_average_ranks(analyse(table, ours), families)


def rank_heatmap(data: FigureData) -> Figure:
    """Ranks of the results."""
    table = data.scores()
    if len(table.methods) < 2:
        raise InvalidDataError("Ranks need at least 2 methods. Run more: tabnsm bench run")
    return draw_rank_heatmap(
        table.renamed({method: display_name(method) for method in table.methods})
    )


def bubbles(data: FigureData) -> Figure:
    """Error, time and memory of the methods that finished on every dataset."""
    rows: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for spec, result in main_runs(data.results, data.metric, data.encoding):
        if data.datasets is None or dataset_label(spec) in data.datasets:
            rows[spec.method, dataset_label(spec)].append(result)
    datasets = sorted({dataset for _, dataset in rows})
    methods = sorted({method for method, _ in rows})
    whole = [m for m in methods if all((m, dataset) in rows for dataset in datasets)]
    entries = place_methods(
        [
            {
                "method": method,
                "dataset": dataset,
                "rmse": _mean([run["metrics"]["test"][data.metric] for run in runs]),
                **{key: _mean([run[key] for run in runs]) for key in _COSTS},
            }
            for (method, dataset), runs in rows.items()
            if method in whole
        ]
    )
    drawn = [
        Bubble(
            display_name(entry["method"]),
            family(entry["method"]),
            entry["relative_rmse"],
            entry["fit_seconds"],
            entry["peak_memory_mb"],
        )
        for entry in entries
        if None not in entry.values()
    ]
    if not drawn:
        raise InvalidDataError(_NO_RUNS.format(" of one method on all datasets"))
    left_out = len(methods) - len(drawn)
    also = f"; left out for missing results: {left_out}" if left_out else ""
    return draw_bubbles(
        drawn,
        f"Test {data.metric.upper()}, time and memory over {', '.join(datasets)}{also}",
    )


def training_curves(data: FigureData) -> Figure:
    """Validation error over time of the methods that recorded it."""
    curves: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for spec, result in main_runs(data.results, data.metric, data.encoding):
        curve = curve_of(result)
        if len(curve) > 1 and (data.datasets is None or dataset_label(spec) in data.datasets):
            curves[dataset_label(spec)][display_name(spec.method)].append(curve)
    if not curves:
        raise InvalidDataError(_NO_RUNS.format(" that recorded their validation error"))
    return draw_training_curves(
        curves, "Validation error during training, the median run of each method"
    )


_COSTS = ("fit_seconds", "predict_seconds", "peak_memory_mb")


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
