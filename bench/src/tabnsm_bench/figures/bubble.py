"""Accuracy against cost: the bubble chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm_bench.figures.labels import place_labels
from tabnsm_bench.figures.style import (
    BLACK,
    GREY,
    family_legend,
    family_style,
    headline,
    new_figure,
    plain_log_ticks,
    quiet_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_AREA = 900.0  # area of the largest bubble, in square points


@dataclass(frozen=True)
class Bubble:
    """One method: its error over the best method's, seconds of fitting and MB at the peak."""

    name: str
    family: str
    relative_error: float
    seconds: float
    megabytes: float


def draw_bubbles(bubbles: Sequence[Bubble], title: str) -> Figure:
    """Draw error over time, with the memory as the area: good methods are at the lower left.

    Parameters
    ----------
    bubbles : sequence of Bubble
        Methods.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(10, 6)
    axis = figure.subplots()
    largest = max(bubble.megabytes for bubble in bubbles)
    areas = [max(30.0, _MAX_AREA * bubble.megabytes / largest) for bubble in bubbles]
    # Small ones last, so that none is hidden.
    for i in np.argsort(areas)[::-1]:
        bubble = bubbles[i]
        colour, marker, _ = family_style(bubble.family)
        axis.scatter(
            bubble.seconds,
            bubble.relative_error,
            s=areas[i],
            color=colour,
            alpha=0.45,
            edgecolors=BLACK,
            linewidths=0.6,
        )
        axis.plot(
            bubble.seconds,
            bubble.relative_error,
            marker=marker,
            color=colour,
            markeredgecolor=BLACK,
            markeredgewidth=0.4,
            markersize=5,
        )
    _set_limits(axis, bubbles)
    axis.set(
        xlabel="seconds of fitting (geometric mean over datasets)",
        ylabel="error over the best method's (geometric mean)",
    )
    quiet_axes(axis, "both")
    _frontier(axis, bubbles)
    families = [bubble.family for bubble in bubbles]
    family_legend(figure, families, loc="outside right upper", fontsize=9)
    _size_legend(figure, largest)
    headline(figure, title, width=7.5)  # the legend is beside it
    place_labels(
        figure,
        axis,
        [(bubble.seconds, bubble.relative_error, bubble.name) for bubble in bubbles],
        [float(np.sqrt(area / np.pi)) for area in areas],
    )
    return figure


def pareto(bubbles: Sequence[Bubble]) -> list[Bubble]:
    """Methods that no other beats in both time and error, fastest first.

    Examples
    --------
    >>> rows = [("slow", 1.0, 9.0), ("fast", 2.0, 1.0), ("bad", 3.0, 9.0)]
    >>> [b.name for b in pareto([Bubble(n, "", e, s, 1.0) for n, e, s in rows])]
    ['fast', 'slow']
    """
    front: list[Bubble] = []
    for bubble in sorted(bubbles, key=lambda b: (b.seconds, b.relative_error)):
        if not front or bubble.relative_error < front[-1].relative_error:
            front.append(bubble)
    return front


def _set_limits(axis: Any, bubbles: Sequence[Bubble]) -> None:
    """Room for bubbles and names at the edges, also where all methods are in one place."""
    seconds = [bubble.seconds for bubble in bubbles]
    errors = [bubble.relative_error for bubble in bubbles]
    axis.set_xscale("log")
    room = max(1.6, (max(seconds) / min(seconds)) ** 0.12)
    axis.set_xlim(min(seconds) / room, max(seconds) * room)
    plain_log_ticks(axis.xaxis)
    if max(errors) > 3 * min(errors):
        axis.set_yscale("log")
        axis.set_ylim(min(errors) / 1.3, max(errors) * 1.3)
        plain_log_ticks(axis.yaxis)
    else:
        gap = max(0.12 * (max(errors) - min(errors)), 0.02)
        axis.set_ylim(min(errors) - gap, max(errors) + gap)


def _frontier(axis: Any, bubbles: Sequence[Bubble]) -> None:
    front = pareto(bubbles)
    axis.step(
        [bubble.seconds for bubble in front],
        [bubble.relative_error for bubble in front],
        where="post",
        color=GREY,
        linestyle="--",
        linewidth=1,
        zorder=0,
        label="front: no method is both\nfaster and more accurate",
    )
    axis.legend(loc="upper right", frameon=False, fontsize=8.5)


def _size_legend(figure: Figure, largest: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            color=GREY,
            alpha=0.5,
            markersize=float(np.sqrt(_MAX_AREA * value / largest)),
            label=f"{value:,.0f} MB",
        )
        for value in (largest, largest / 4)
    ]
    figure.legend(
        handles=handles,
        frameon=False,
        loc="outside right lower",
        fontsize=9,
        labelspacing=1.6,
        borderpad=1.2,
        title="peak memory",
    )
