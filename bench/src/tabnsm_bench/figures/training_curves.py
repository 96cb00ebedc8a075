"""Validation error over training time, a panel per dataset and a line per method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabnsm_bench.figures.style import (
    BLACK,
    MANY,
    MARKERS,
    headline,
    legend_below,
    panels,
    plain_log_ticks,
    quiet_axes,
)
from tabnsm_bench.paper import OURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, float]]
_LINES = ("-", "--", ":")  # for more methods than colours


def draw_training_curves(curves: Mapping[str, Mapping[str, Sequence[Curve]]], title: str) -> Figure:
    """Draw the best validation RMSE so far over seconds of training.

    Of several runs of a method the one with the median result is drawn.

    Parameters
    ----------
    curves : mapping of dataset to mapping of method to sequence of curves
        One curve per run, each of (seconds, validation RMSE).
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    methods = list(dict.fromkeys(name for by_method in curves.values() for name in by_method))
    methods.sort(key=lambda name: not name.startswith(OURS))  # the strongest colours first
    figure, axes = panels(len(curves), width=4.8)
    for axis, (dataset, by_method) in zip(axes, curves.items(), strict=True):
        ends = []
        for name, runs in by_method.items():
            place = methods.index(name)
            seconds, errors = np.array(median_run(runs)).T
            best = np.minimum.accumulate(errors)
            ends.append(best)
            axis.plot(
                seconds,
                best,
                color=MANY[place % len(MANY)],
                linestyle=_LINES[place // len(MANY) % len(_LINES)],
                linewidth=1.4,
                marker=MARKERS[place % len(MARKERS)],
                markevery=[len(best) - 1],
                markeredgecolor=BLACK,
                markeredgewidth=0.5,
                label=name,
            )
        # The first steps of boosting are far above all that matters.
        low = min(float(best[-1]) for best in ends)
        high = max(float(np.quantile(best, 0.9)) for best in ends)
        axis.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low) or None)
        axis.set_xscale("log")
        plain_log_ticks(axis.xaxis)
        axis.set(xlabel="seconds of training", ylabel="best validation RMSE so far")
        axis.set_title(dataset, fontsize=10)
        quiet_axes(axis, "both")
    legend_below(figure, axes)
    headline(figure, title)
    return figure


def median_run(runs: Sequence[Curve]) -> Curve:
    """The run whose best error is the median, of an even number the better one.

    Examples
    --------
    >>> median_run([[(1, 5.0)], [(1, 3.0)], [(1, 4.0), (2, 9.0)]])
    [(1, 4.0), (2, 9.0)]
    """
    by_result = sorted(runs, key=lambda run: min(error for _, error in run))
    return by_result[(len(by_result) - 1) // 2]
