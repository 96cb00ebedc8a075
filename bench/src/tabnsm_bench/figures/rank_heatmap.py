"""Ranks of all methods on all datasets at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tabnsm_bench.figures.style import headline, new_figure
from tabnsm_bench.rank_tests import rank_methods
from tabnsm_bench.scores import ScoreTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_rank_heatmap(table: ScoreTable) -> Figure:
    """Draw a cell per method and dataset, dark where the method ranks high.

    Parameters
    ----------
    table : ScoreTable
        Scores; missing ones are left blank and marked.

    Returns
    -------
    matplotlib.figure.Figure
    """
    ranks = rank_methods(table.mean)
    order = np.argsort(ranks.mean(axis=1), kind="stable")
    known = np.where(np.isnan(table.mean), np.nan, ranks)[order]
    k, n = known.shape
    # Cells have one size, also in a table of one dataset.
    figure = new_figure(3.7 + 0.62 * n, 1.6 + 0.235 * k)
    axis = figure.subplots()
    image = axis.imshow(known, cmap="Blues_r", aspect="auto", vmin=1, vmax=max(k, 2))
    for i in range(k):
        for j in range(n):
            missing = np.isnan(known[i, j])
            dark = not missing and known[i, j] < 0.45 * k
            axis.text(
                j,
                i,
                "–" if missing else f"{known[i, j]:g}",
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else "black",
            )
    averages = ranks.mean(axis=1)[order]
    names = [table.methods[i] for i in order]
    axis.set_yticks(
        range(k),
        [f"{name}  {rank:.2f}" for name, rank in zip(names, averages, strict=True)],
        fontsize=8,
    )
    labels = [f"{name} *" if name in table.partial else name for name in table.datasets]
    long = max(map(len, labels)) > 6
    axis.set_xticks(
        range(n), labels, fontsize=8.5, rotation=40 if long else 0, ha="left" if long else "center"
    )
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(image, ax=axis, shrink=0.5, pad=0.02, label="rank (1 is best)")
    bar.ax.invert_yaxis()
    bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    star = "; * only a part of the table" if table.partial & set(table.datasets) else ""
    headline(
        figure,
        f"{table.metric.upper()} ranks, by average rank\n(– no result: counts as worst{star})",
    )
    return figure
