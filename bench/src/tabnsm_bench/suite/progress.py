"""The picture of accepted changes: the figure of both halves after each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tabnsm.errors import InvalidDataError
from tabnsm_bench.figures.style import BLUE, GREY, VERMILION, new_figure
from tabnsm_bench.suite.figure_of_merit import REFERENCE, half_summaries, runs_by_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCEPTED = "accepted.json"


def draw_progress(results: Path) -> Figure:
    """Draw the accepted changes in their order.

    Parameters
    ----------
    results : Path
        Folder with one folder per change, and accepted.json, a list of objects with "label",
        "what" and, where it is not TabNSM's default, "method".
    """
    path = results / ACCEPTED
    if not path.exists():
        raise InvalidDataError(
            f"The accepted changes must be listed in {path.name}; it is missing."
        )
    accepted = json.loads(path.read_text())
    peers = runs_by_table(results / "peers", REFERENCE)
    figure = new_figure(9.0, 4.5)
    axes = figure.subplots()
    for half, color, marker in (("choose", BLUE, "o"), ("confirm", VERMILION, "s")):
        points = []
        for k, change in enumerate(accepted):
            method = change.get("method", "tabnsm-default")
            summary = half_summaries(runs_by_table(results / change["label"], method), peers)[half]
            if summary is not None:
                points.append((k, summary.rmse))
        axes.plot(*zip(*points, strict=True), color=color, marker=marker, label=half)
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set_xticks(range(len(accepted)), [change["what"] for change in accepted])
    axes.tick_params(axis="x", labelrotation=30)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("right")
    axes.set_ylabel("RMSE over CatBoost's\n(geometric mean)")
    axes.set_title("Accepted changes on the suite, 60 seconds of one core per fit")
    axes.legend(frameon=False)
    return figure
