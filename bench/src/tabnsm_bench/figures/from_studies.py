"""Figures of ablations and studies, from whatever runs of them there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Any, TypeVar

from tabnsm.errors import InvalidDataError
from tabnsm_bench.figures.ablation import draw_ablation
from tabnsm_bench.figures.data import FigureData
from tabnsm_bench.figures.fractions import draw_fractions
from tabnsm_bench.figures.memory import draw_memory
from tabnsm_bench.figures.parameter_scaling import draw_parameter_scaling
from tabnsm_bench.figures.sensitivity import draw_sensitivity, draw_sparse_parameters
from tabnsm_bench.figures.spread import draw_spread
from tabnsm_bench.figures.temperature import TargetPoint, draw_temperatures
from tabnsm_bench.figures.thresholds import TimedTable, draw_thresholds
from tabnsm_bench.naming import display_name
from tabnsm_bench.studies import find_study
from tabnsm_bench.studies.variant import preset_options
from tabnsm_bench.studies_found import study_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]
Variant = TypeVar("Variant", str, float)

_AXES = {
    "temperature": ("temperature", "temperature τ", True),
    "blend": ("huber_weight", "share of Huber (1 = Huber alone, 0 = GridLoss alone)", False),
    "grid-cells": ("n_grid_cells", "grid cells K", True),
}
_SHARES = {"features": "share of the columns", "samples": "share of the training rows"}


def ablation(name: str, data: FigureData) -> Figure:
    """Bars of a study whose rows are named variants."""
    study = find_study(name)
    measure = study.measures[0]
    reference = next(row.label for row in study.rows(data.preset) if row.is_reference)
    scores = _by_variant(_rows(name, data), measure.key)
    _need_two(name, scores.values())
    return draw_ablation(scores, reference, _title(name, data), measure.header)


def spread(name: str, data: FigureData) -> Figure:
    """Boxes of a study over seeds."""
    measure = find_study(name).measures[0]
    scores = {
        dataset: {display_name(variant): runs for variant, runs in by_variant.items()}
        for dataset, by_variant in _by_variant(_rows(name, data), measure.key).items()
    }
    # Of the study over seeds there may be any number of runs, which the boxes say.
    title = f"Spread over seeds (preset {data.preset})" if name == "seeds" else _title(name, data)
    if name != "seeds":
        _need_two(name, scores.values())
    # A box of one run shows no spread.
    several = {
        dataset: by_variant
        for dataset, by_variant in scores.items()
        if any(len(runs) > 1 for runs in by_variant.values())
    }
    scores = several or scores
    return draw_spread(scores, title, measure.header)


def sensitivity(name: str, data: FigureData) -> Figure:
    """Curves of a study over one number."""
    option, label, is_log = _AXES[name]
    curves = _curves(_rows(name, data), find_study(name).measures[0].key)
    _need_two(name, curves.values())
    own = preset_options(data.preset)[option]
    return draw_sensitivity(curves, label, own, _title(name, data), is_log)


def sparse_parameters(data: FigureData) -> Figure:
    """Curves over the four parameters of sparse attention."""
    rows = _rows("sparse", data)
    key = find_study("sparse").measures[0].key
    groups = {
        group: _curves([row for row in rows if row["group"] == group], key)
        for group in dict.fromkeys(row["group"] for row in rows)
    }
    drawn = {group: curves for group, curves in groups.items() if curves}
    _need_two("sparse", [curve for curves in drawn.values() for curve in curves.values()])
    return draw_sparse_parameters(drawn, preset_options(data.preset), _title("sparse", data))


def fractions(name: str, data: FigureData) -> Figure:
    """Curves over a share of the table, one per method."""
    measure = find_study(name).measures[0]
    rows = _rows(name, data)
    scores: dict[str, dict[str, dict[float, list[float]]]] = defaultdict(dict)
    for group in dict.fromkeys(row["group"] for row in rows):
        curves = _curves([row for row in rows if row["group"] == group], measure.key)
        for dataset, curve in curves.items():
            scores[dataset][display_name(group)] = curve
    _need_two(name, [curve for by_method in scores.values() for curve in by_method.values()])
    return draw_fractions(scores, _SHARES[name], _title(name, data), measure.header)


def parameters(data: FigureData) -> Figure:
    """Counts of parameters; needs no runs."""
    general, by_dataset = [], defaultdict(list)
    for row in _rows("parameters", data):
        point = (row["n_features"], row["n_parameters"])
        if row["share"]:
            by_dataset[row["dataset"]].append(point)
        else:
            general.append(point)
    return draw_parameter_scaling(general, by_dataset, _title("parameters", data))


def thresholds(data: FigureData) -> Figure:
    """Seconds to the level that all methods reach."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    n_rows = {}
    for row in _rows("threshold", data):
        if row["level"] == "all reach":
            found[row["dataset"]][display_name(row["method"])] = row["seconds"]
            n_rows[row["dataset"]] = row["n_rows"]
    if not found:
        raise InvalidDataError(
            "Times need runs of two methods that recorded their validation error on one dataset. "
            "Make them with: tabnsm bench study threshold"
        )
    tables = [TimedTable(name, n_rows[name], seconds) for name, seconds in found.items()]
    return draw_thresholds(
        tables, "Training time on the CPU to the validation RMSE that all methods reach"
    )


def memory(data: FigureData) -> Figure:
    """Peak memory over the number of features."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in _rows("memory", data):
        if row["peak_memory_mb"] is not None and row["n_features"] is not None:
            line = f"TabNSM, {row['group']}" if row["group"].startswith("batch") else row["group"]
            point = (row["n_features"], row["peak_memory_mb"])
            points[row["dataset"]][display_name(line)].append(point)
    if not points:
        raise InvalidDataError(
            "Memory needs runs that recorded it. Make them with: tabnsm bench study memory"
        )
    return draw_memory(points, "features", _title("memory", data))


def temperatures(data: FigureData) -> Figure:
    """Best temperature over the shape of the target."""
    if data.data_dir is None:
        raise InvalidDataError("The targets are needed for this. Add: --data-dir")
    points = [
        TargetPoint(
            row["dataset"],
            row["iqr_over_std"],
            row["best_temperature"],
            list(zip(row["temperatures"], row["normalized"], strict=True)),
        )
        for row in _rows("temperature-by-target", data)
        if row.get("best_temperature") is not None
    ]
    return draw_temperatures(points, _title("temperature-by-target", data))


def _rows(name: str, data: FigureData) -> Rows:
    table = study_table(
        name, data.results, data.preset, data_dir=data.data_dir, encoding=data.encoding
    )
    return table.rows


def _need_two(name: str, curves: Iterable[Sized]) -> None:
    """Complain of a study that has nothing but its reference, which other runs share."""
    if all(len(curve) < 2 for curve in curves):
        raise InvalidDataError(
            f"The study {name!r} needs runs of at least 2 variants on one dataset. "
            f"Make them with: tabnsm bench study {name}"
        )


def _by_variant(rows: Rows, key: str) -> dict[str, dict[str, list[float]]]:
    """Scores of each variant on each dataset, of the seeds that all its variants have.

    Another study may have run the reference with more seeds; they would make the comparison
    one of seeds.
    """
    found: dict[str, dict[str, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        if row["seeds"][key]:
            found[row["dataset"]][row["variant"]] = row["seeds"][key]
    return {dataset: _of_shared_seeds(by_variant) for dataset, by_variant in found.items()}


def _curves(rows: Rows, key: str) -> dict[str, dict[float, list[float]]]:
    """Scores at each value on each dataset that has more than the reference."""
    found: dict[str, dict[float, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        if row["seeds"][key]:
            found[row["dataset"]][row["value"]] = row["seeds"][key]
    return {
        dataset: _of_shared_seeds(by_value)
        for dataset, by_value in found.items()
        if len(by_value) > 1
    }


def _of_shared_seeds(by_variant: dict[Variant, dict[str, float]]) -> dict[Variant, list[float]]:
    """Scores of the seeds that all variants have, or all scores where there are no such seeds."""
    shared = set.intersection(*(set(by_seed) for by_seed in by_variant.values()))
    return {
        variant: [by_seed[seed] for seed in (sorted(shared) or by_seed)]
        for variant, by_seed in by_variant.items()
    }


def _title(name: str, data: FigureData) -> str:
    return f"{find_study(name).description} (preset {data.preset})"
