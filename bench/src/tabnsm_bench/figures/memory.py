"""Memory of training: lines over the number of features, or bars per dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tabnsm_bench.figures.style import (
    CYCLE,
    MARKERS,
    legend_below,
    new_figure,
    panels,
    quiet_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_memory(
    points: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], across: str, title: str
) -> Figure:
    """Draw peak memory, a panel per dataset and a line per method or batch size.

    Parameters
    ----------
    points : mapping of dataset to mapping of line to sequence of (x, MB)
        Peaks of whole processes.
    across : str
        What x is.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    names = list(dict.fromkeys(name for lines in points.values() for name in lines))
    figure, axes = panels(len(points))
    for axis, (dataset, lines) in zip(axes, points.items(), strict=True):
        for name, pairs in lines.items():
            place = names.index(name)
            xs, ys = zip(*sorted(pairs), strict=True)
            axis.plot(
                xs,
                ys,
                color=CYCLE[place % len(CYCLE)],
                marker=MARKERS[place % len(MARKERS)],
                label=name,
            )
        axis.set_ylim(0, 1.15 * max(y for pairs in lines.values() for _, y in pairs))
        axis.set(xlabel=across, ylabel="peak memory in MB")
        axis.set_title(dataset, fontsize=10)
        quiet_axes(axis)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_memory_bars(megabytes: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw a group of bars per dataset, one bar per method.

    Parameters
    ----------
    megabytes : mapping of method to mapping of dataset to float
        Memory.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    datasets = list(dict.fromkeys(name for by_dataset in megabytes.values() for name in by_dataset))
    width = 0.8 / len(megabytes)
    figure = new_figure(max(5.5, 1.3 * len(datasets) + 2), 4)
    axis = figure.subplots()
    for place, (method, by_dataset) in enumerate(megabytes.items()):
        for j, dataset in enumerate(datasets):
            if dataset not in by_dataset:
                continue
            x = j + (place - (len(megabytes) - 1) / 2) * width
            bars = axis.bar(
                x,
                by_dataset[dataset],
                width=0.92 * width,
                color=CYCLE[place % len(CYCLE)],
                hatch=("", "//", "..", "xx")[place % 4],
                edgecolor="white",
                label=method if dataset == next(iter(by_dataset)) else None,
            )
            axis.bar_label(bars, fmt="{:,.0f}", fontsize=8, padding=2)
    axis.set_xticks(range(len(datasets)), datasets)
    axis.set_ylabel("MB")
    axis.margins(y=0.12)
    axis.legend(frameon=False)
    quiet_axes(axis)
    figure.suptitle(title, fontsize=10)
    return figure
