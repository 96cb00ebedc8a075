"""Training time to a level of validation error, against the number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabnsm_bench.figures.style import (
    CYCLE,
    MARKERS,
    PALE,
    new_figure,
    plain_log_ticks,
    quiet_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TimedTable:
    """One dataset: its rows, and seconds by method; None where the level was not reached."""

    name: str
    n_rows: int
    seconds: Mapping[str, float | None]


def draw_thresholds(tables: list[TimedTable], title: str) -> Figure:
    """Draw a line per method over the datasets, both axes logarithmic.

    Parameters
    ----------
    tables : list of TimedTable
        Datasets in any order.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    tables = sorted(tables, key=lambda table: table.n_rows)
    methods = list(dict.fromkeys(name for table in tables for name in table.seconds))
    figure = new_figure(7, 4.4)
    axis = figure.subplots()
    for place, method in enumerate(methods):
        points = [
            (table.n_rows, seconds)
            for table in tables
            if (seconds := table.seconds.get(method)) is not None
        ]
        if points:
            xs, ys = zip(*points, strict=True)
            axis.plot(
                xs,
                ys,
                color=CYCLE[place % len(CYCLE)],
                marker=MARKERS[place % len(MARKERS)],
                markersize=7,
                linewidth=1.4,
                label=method,
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    reached = [s for table in tables for s in table.seconds.values() if s is not None]
    everything = [s for table in tables for s in table.seconds.values()]
    top = max(reached) * (4 if None in everything else 1)
    axis.set_ylim(0.5 * min(reached), 2 * top)
    _mark_unreached(axis, tables, methods, top)
    axis.set_xlim(tables[0].n_rows / 1.5, tables[-1].n_rows * 1.5)
    plain_log_ticks(axis.xaxis)
    plain_log_ticks(axis.yaxis)
    _name_tables(axis, tables)
    axis.set(xlabel="rows", ylabel="seconds of training to the level")
    axis.legend(frameon=False, fontsize=9)
    quiet_axes(axis, "y")
    figure.suptitle(title, fontsize=10)
    return figure


def _mark_unreached(axis: Any, tables: list[TimedTable], methods: list[str], height: float) -> None:
    """Hollow markers at the top for methods that never got there."""
    for place, method in enumerate(methods):
        missed = [t.n_rows for t in tables if method in t.seconds and t.seconds[method] is None]
        if missed:
            axis.plot(
                missed,
                [height] * len(missed),
                linestyle="",
                marker=MARKERS[place % len(MARKERS)],
                markersize=7,
                markerfacecolor="none",
                markeredgecolor=CYCLE[place % len(CYCLE)],
                label=f"{method}: not reached",
            )


def _name_tables(axis: Any, tables: list[TimedTable]) -> None:
    """Names of the datasets above the plot; those with nearly the same rows share a place."""
    whole = math.log(tables[-1].n_rows / tables[0].n_rows) or 1.0
    places: list[tuple[int, list[str]]] = []
    for table in tables:
        if places and math.log(table.n_rows / places[-1][0]) < 0.05 * whole:
            places[-1][1].append(table.name)
        else:
            places.append((table.n_rows, [table.name]))
    above = axis.secondary_xaxis("top")
    above.set_xticks(
        [n_rows for n_rows, _ in places],
        [", ".join(names) for _, names in places],
        fontsize=8,
        rotation=25,
        ha="left",
        rotation_mode="anchor",
    )
    above.minorticks_off()
    for n_rows, _ in places:
        axis.axvline(n_rows, color=PALE, linewidth=0.6, zorder=0)
