"""Error against the value of one option: a line per dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm_bench.figures.style import (
    BLACK,
    CYCLE,
    GREY,
    MARKERS,
    legend_below,
    new_figure,
    panels,
    quiet_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curves = Mapping[str, Mapping[float, Sequence[float]]]


def draw_sensitivity(
    scores: Curves, option: str, own_value: float | None, title: str, is_log: bool = False
) -> Figure:
    """Draw the error over the best value's error, so that datasets share one axis.

    Parameters
    ----------
    scores : mapping of dataset to mapping of value to sequence of float
        Scores of all runs.
    option : str
        Name of the option, for the axis.
    own_value : float or None
        The preset's own value, which is marked.
    title : str
        Headline.
    is_log : bool, default False
        Whether values span decades.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 4.2)
    axis = figure.subplots()
    _draw_lines(axis, scores, own_value, is_log)
    axis.set(xlabel=option, ylabel="normalised RMSE (1 = best value)")
    axis.legend(frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def draw_sparse_parameters(
    groups: Mapping[str, Curves], own_values: Mapping[str, float], title: str
) -> Figure:
    """Draw one panel per parameter of sparse attention: datasets, and their mean in black.

    Parameters
    ----------
    groups : mapping of parameter to mapping of dataset to mapping of value to scores
        Scores of all runs.
    own_values : mapping of parameter to float
        The preset's own values, which are marked.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = panels(len(groups), width=4.8, height=3.4)
    for axis, (parameter, scores) in zip(axes, groups.items(), strict=True):
        _draw_lines(axis, scores, own_values.get(parameter), is_log=False)
        if len(scores) > 1:
            _draw_mean(axis, scores)
        axis.set(xlabel=parameter, ylabel="normalised validation RMSE")
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=10)
    return figure


def normalised(values: Mapping[float, Sequence[float]]) -> dict[float, tuple[float, float]]:
    """Mean and standard deviation per value, over the lowest mean.

    Examples
    --------
    >>> normalised({2.0: [3.0, 5.0], 1.0: [2.0]})
    {1.0: (1.0, 0.0), 2.0: (2.0, 0.7071067811865476)}
    """
    means = {value: float(np.mean(runs)) for value, runs in sorted(values.items())}
    best = min(means.values())
    return {
        value: (mean / best, float(np.std(values[value], ddof=1)) / best)
        if len(values[value]) > 1
        else (mean / best, 0.0)
        for value, mean in means.items()
    }


def _draw_lines(axis: Any, scores: Curves, own_value: float | None, is_log: bool) -> None:
    for place, (dataset, values) in enumerate(scores.items()):
        points = normalised(values)
        means, errors = zip(*points.values(), strict=True)
        colour = CYCLE[place % len(CYCLE)]
        axis.plot(
            list(points),
            means,
            label=dataset,
            color=colour,
            marker=MARKERS[place % len(MARKERS)],
            markersize=6,
            linewidth=1.4,
        )
        axis.errorbar(
            list(points), means, yerr=errors, fmt="none", ecolor=colour, alpha=0.45, capsize=2.5
        )
    if own_value is not None:
        axis.axvline(own_value, color=GREY, linestyle="--", linewidth=1, label="preset's own")
    if is_log:
        axis.set_xscale("log")
    ticks = sorted({value for curve in scores.values() for value in curve})
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    quiet_axes(axis)


def _draw_mean(axis: Any, scores: Curves) -> None:
    """The mean over datasets, at values that all of them have."""
    curves = [normalised(values) for values in scores.values()]
    shared = sorted(set.intersection(*(set(curve) for curve in curves)))
    means = [np.mean([curve[value][0] for curve in curves]) for value in shared]
    axis.plot(shared, means, color=BLACK, linewidth=2.6, label="mean", zorder=4)
