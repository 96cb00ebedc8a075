"""Number of parameters against the number of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tabnsm_bench.figures.style import BLACK, CYCLE, GREY, MARKERS, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Counts = Sequence[tuple[int, int]]


def draw_parameter_scaling(general: Counts, by_dataset: Mapping[str, Counts], title: str) -> Figure:
    """Draw counts on logarithmic axes, with straight lines for growth by D and by D squared.

    Parameters
    ----------
    general : sequence of (n_features, n_parameters)
        For tables of numbers of any width.
    by_dataset : mapping of dataset to sequence of (n_features, n_parameters)
        For shares of the columns of real tables; may be empty.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 4.6)
    axis = figure.subplots()
    features, counts = zip(*general, strict=True)
    axis.plot(features, counts, color=BLACK, marker="o", markersize=5, label="numeric features")
    last = counts[-1] / features[-1]
    axis.plot(features, [last * x for x in features], "--", color=GREY, label="linear in D")
    square = counts[-1] / features[-1] ** 2
    axis.plot(features, [square * x**2 for x in features], ":", color=GREY, label="square in D")
    for place, (dataset, points) in enumerate(by_dataset.items()):
        xs, ys = zip(*points, strict=True)
        axis.plot(
            xs,
            ys,
            color=CYCLE[place % len(CYCLE)],
            marker=MARKERS[(place + 1) % len(MARKERS)],
            label=f"{dataset}, shares of its columns",
        )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_ylim(0.5 * min(counts), 2 * max(counts))
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.set(xlabel="features D", ylabel="parameters")
    axis.legend(frameon=False, fontsize=8.5)
    quiet_axes(axis, "both")
    figure.suptitle(title, fontsize=10)
    return figure
