"""The pictures of the pages on performance, each drawn from the records of the benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from sides import TABNSM

# Of the palette by Okabe and Ito, which people with any colour vision can tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
COLOURS = {TABNSM: BLUE, "TabM": ORANGE, "CatBoost": ORANGE, "LightGBM": GREEN}

Records = Mapping[str, Mapping[str, Any]]


def draw_all(records: Records) -> dict[str, Figure]:
    """Every picture whose records are there, by name."""
    drawers = {
        "operator": draw_operator,
        "scaling": draw_scaling,
        "models": draw_models,
        "end_to_end": draw_end_to_end,
    }
    style = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with mpl.rc_context(style):
        figures = {name: draw(records) for name, draw in drawers.items()}
    return {name: figure for name, figure in figures.items() if figure is not None}


def draw_operator(records: Records) -> Figure | None:
    """Time of the operator and of dense attention over the number of features, log-log."""
    if "operator" not in records:
        return None
    rows = records["operator"]["result"]["rows"]
    heads = list(dict.fromkeys(row["heads"] for row in rows))
    figure = Figure(figsize=(4.6 * len(heads), 3.8), dpi=130, layout="constrained")
    axes = figure.subplots(1, len(heads), squeeze=False, sharey=True)[0]
    for axis, head in zip(axes, heads, strict=True):
        part = [row for row in rows if row["heads"] == head]
        widths = [row["n_features"] for row in part]
        for side, colour in (("sparse", BLUE), ("dense", ORANGE)):
            step = [row[f"{side}_step_ms"] for row in part]
            forward = [row[f"{side}_forward_ms"] for row in part]
            axis.loglog(widths, step, "o-", color=colour, label=f"{side}, forward + backward")
            axis.loglog(widths, forward, "o:", color=colour, label=f"{side}, forward")
        axis.set_xticks(widths, [f"{width:,}" for width in widths])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.set(xlabel="features D", title=f"heads {head}")
    axes[0].set_ylabel("milliseconds")
    axes[0].legend(fontsize=8, frameon=False)
    return figure


def draw_scaling(records: Records) -> Figure | None:
    """Cost of a step over the features, and of an epoch over the rows, beside reference lines."""
    if "scaling" not in records:
        return None
    rows = records["scaling"]["result"]["rows"]
    panels = (
        ("n_features", "step_ms", "features D", "step, milliseconds"),
        ("n_features", "peak_mb", "features D", "step, peak MB"),
        ("n_rows", "epoch_ms", "rows N", "epoch, milliseconds"),
    )
    figure = Figure(figsize=(4.0 * len(panels), 3.6), dpi=130, layout="constrained")
    axes = figure.subplots(1, len(panels))
    for axis, (size, cost, xlabel, ylabel) in zip(axes, panels, strict=True):
        points = [(row[size], row[cost]) for row in rows if cost in row]
        sizes, costs = zip(*points, strict=True)
        for exponent, style in ((1, "--"), (2, ":")):
            line = [costs[0] * (x / sizes[0]) ** exponent for x in sizes]
            axis.loglog(sizes, line, style, color=GREY, label=f"exponent {exponent}")
        axis.loglog(sizes, costs, "o-", color=BLUE, label="measured")
        axis.set_ylim(0.5 * min(costs), 6 * max(costs))
        axis.set_xticks(sizes, [f"{x:,}" for x in sizes], fontsize=8)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.set(xlabel=xlabel, ylabel=ylabel)
    axes[0].legend(fontsize=8, frameon=False)
    return figure


def draw_models(records: Records) -> Figure | None:
    """Rows per second of the models in training and in prediction."""
    names = ("model_step", "model_step_ft_transformer")
    steps = [row for name in names if name in records for row in records[name]["result"]["rows"]]
    speeds = {}
    if steps:
        batch = max(row["batch"] for row in steps)
        speeds[f"training, batch {batch}"] = {
            row["model"]: row["rows_per_second"] for row in reversed(steps) if row["batch"] == batch
        }
    if "prediction" in records:
        rows = records["prediction"]["result"]["rows"]
        speeds["prediction"] = {row["model"]: row["rows_per_second"] for row in rows}
    if not speeds:
        return None
    figure = Figure(figsize=(4.8 * len(speeds), 2.8), dpi=130, layout="constrained")
    axes = figure.subplots(1, len(speeds), squeeze=False)[0]
    for axis, (title, speed) in zip(axes, speeds.items(), strict=True):
        models = sorted(speed, key=speed.__getitem__)
        values = [speed[model] for model in models]
        axis.barh(models, values, color=[BLUE if model == TABNSM else GREY for model in models])
        for place, value in enumerate(values):
            axis.text(value, place, f" {value:,.0f}", va="center", fontsize=8)
        axis.set_xscale("log")
        axis.set_xlim(min(values) / 3, max(values) * 8)
        axis.set(xlabel="rows per second", title=title)
    return figure


def draw_end_to_end(records: Records) -> Figure | None:
    """Best validation RMSE so far over the seconds of training, one panel per table."""
    results = [r["result"] for name, r in records.items() if name.startswith("end_to_end")]
    if not results:
        return None
    figure = Figure(figsize=(4.8 * len(results), 3.6), dpi=130, layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)[0]
    for axis, result in zip(axes, results, strict=True):
        for name, curve in result["curves"].items():
            seconds, scores = zip(*curve, strict=True)
            axis.step(seconds, scores, where="post", color=COLOURS[name], label=name)
        best = min(scores[1] for curve in result["curves"].values() for scores in curve)
        axis.set_xscale("log")
        weakest = max(min(scores[1] for scores in curve) for curve in result["curves"].values())
        axis.set_ylim(0.97 * best, max(2 * best, 1.3 * weakest))
        axis.grid(alpha=0.3)
        settings = result["settings"]
        title = f"{settings['table']}, D = {settings['n_features']}, N = {settings['n_train']:,}"
        axis.set(xlabel="seconds of training", ylabel="best validation RMSE so far", title=title)
        axis.legend(frameon=False, fontsize=8)
    return figure
