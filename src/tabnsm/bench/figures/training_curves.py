"""Validation error over training time, a panel per dataset and a line per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.bench.figures.style import BLACK, CYCLE, MARKERS, panels, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, float]]
_LINES = ("-", "--", ":")  # for more methods than colours


def draw_training_curves(curves: Mapping[str, Mapping[str, Sequence[Curve]]], title: str) -> Figure:
    """Draw the best validation RMSE so far over seconds of training.

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
    figure, axes = panels(len(curves), width=4.8)
    for axis, (dataset, by_method) in zip(axes, curves.items(), strict=True):
        ends = []
        for name, runs in by_method.items():
            place = methods.index(name)
            for number, curve in enumerate(runs):
                seconds, errors = np.array(curve).T
                best = np.minimum.accumulate(errors)
                ends.append(best)
                axis.plot(
                    seconds,
                    best,
                    color=CYCLE[place % len(CYCLE)],
                    linestyle=_LINES[place // len(CYCLE) % len(_LINES)],
                    linewidth=1.2,
                    label=None if number else name,
                )
                axis.plot(
                    seconds[-1],
                    best[-1],
                    marker=MARKERS[place % len(MARKERS)],
                    color=CYCLE[place % len(CYCLE)],
                    markeredgecolor=BLACK,
                    markeredgewidth=0.5,
                )
        # The first steps of boosting are far above all that matters.
        low = min(float(best[-1]) for best in ends)
        high = max(float(np.quantile(best, 0.9)) for best in ends)
        axis.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low) or None)
        axis.set_xscale("log")
        axis.set(xlabel="seconds of training", ylabel="best validation RMSE so far")
        axis.set_title(dataset, fontsize=10)
        quiet_axes(axis, "both")
    handles: dict[str, Any] = {}
    for axis in axes:
        handles |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=min(4, len(handles)),
        frameon=False,
    )
    figure.suptitle(title, fontsize=10)
    return figure
