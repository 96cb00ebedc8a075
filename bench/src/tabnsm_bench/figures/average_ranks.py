"""Average rank of every method, and what the signed-rank test says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tabnsm_bench.figures.style import (
    BLACK,
    family_style,
    in_order,
    new_figure,
    quiet_axes,
)
from tabnsm_bench.statistics import Statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_average_ranks(found: Statistics, families: Mapping[str, str]) -> Figure:
    """Draw a bar per method, best on top, with the corrected p against ours at its end.

    Parameters
    ----------
    found : Statistics
        As from `tabnsm_bench.statistics.analyse`.
    families : mapping of str to str
        Family of each method, for its colour.

    Returns
    -------
    matplotlib.figure.Figure
    """
    ranks, tests = found.average_ranks, found.wilcoxon
    names, k = list(ranks), len(ranks)
    figure = new_figure(9, 1.6 + 0.225 * k)
    axis = figure.subplots()
    for place, name in enumerate(names):
        colour, _, hatch = family_style(families[name])
        axis.barh(
            place,
            ranks[name],
            height=0.72,
            color=colour,
            edgecolor="white",
            hatch=hatch,
            linewidth=0.4,
        )
        if name == tests.ours:
            note = ""
        else:
            p = tests.corrected_p[name]
            note = f"p = {p:.3f}" + ("" if name in tests.significant else ", not significant")
        gaps = len(found.missing.get(name, ()))
        missing = f", {gaps} missing" if gaps else ""
        axis.text(
            ranks[name], place, f" {ranks[name]:.2f}  {note}{missing}", va="center", fontsize=8
        )
    axis.set(
        xlim=(0, 1.3 * max(ranks.values())),
        ylim=(k - 0.4, -0.6),
        xlabel=f"average rank over {len(found.datasets)} datasets (lower is better; "
        "missing results have the worst rank)",
    )
    axis.set_yticks(range(k), names, fontsize=8)
    axis.get_yticklabels()[names.index(tests.ours)].set_fontweight("bold")
    axis.tick_params(axis="y", length=0)
    quiet_axes(axis, "x")
    from matplotlib.patches import Patch

    handles = []
    for family in in_order(families[name] for name in names):
        colour, _, hatch = family_style(family)
        handles.append(Patch(facecolor=colour, edgecolor="white", hatch=hatch, label=family))
    figure.legend(handles=handles, frameon=False, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(
        f"Average {found.metric.upper()} ranks; p: one-sided Wilcoxon test that {tests.ours} "
        f"ranks better,\nBenjamini-Hochberg corrected (largest: {tests.max_corrected_p:.3f})",
        fontsize=10,
        color=BLACK,
    )
    return figure
