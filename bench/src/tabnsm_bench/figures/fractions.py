"""Error against the share of columns or rows that is kept: a panel per dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabnsm_bench.figures.style import CYCLE, MARKERS, legend_below, panels, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_fractions(
    scores: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]],
    share: str,
    title: str,
    unit: str,
) -> Figure:
    """Draw a line per method, with the standard deviation over runs as a band.

    Parameters
    ----------
    scores : mapping of dataset to mapping of method to mapping of share to sequence of float
        Scores of all runs; each dataset gets a panel of its own scale.
    share : str
        What a share of is kept.
    title : str
        Headline.
    unit : str
        What the scores are.

    Returns
    -------
    matplotlib.figure.Figure
    """
    methods = list(dict.fromkeys(name for by_method in scores.values() for name in by_method))
    figure, axes = panels(len(scores), width=4.6)
    for axis, (dataset, by_method) in zip(axes, scores.items(), strict=True):
        for name, values in by_method.items():
            place = methods.index(name)
            shares = sorted(values)
            means = np.array([np.mean(values[x]) for x in shares])
            spread = np.array(
                [np.std(values[x], ddof=1) if len(values[x]) > 1 else 0.0 for x in shares]
            )
            colour = CYCLE[place % len(CYCLE)]
            axis.plot(shares, means, color=colour, marker=MARKERS[place % len(MARKERS)], label=name)
            axis.fill_between(
                shares, means - spread, means + spread, color=colour, alpha=0.18, linewidth=0
            )
        ticks = sorted({value for values in by_method.values() for value in values})
        axis.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
        axis.set(xlabel=share, ylabel=unit)
        axis.set_title(dataset, fontsize=10)
        quiet_axes(axis)
    legend_below(figure, axes)
    figure.suptitle(title, fontsize=10)
    return figure
