"""The critical-difference diagram of Nemenyi's test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tabnsm_bench.figures.style import (
    BLACK,
    GREY,
    PALE,
    VERMILION,
    family_legend,
    family_style,
    new_figure,
)
from tabnsm_bench.statistics import Statistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Labels that bracket the axis on both sides are read by eye up to here; more want a list.
MAX_BRACKETED = 20


def draw_critical_difference(found: Statistics, families: Mapping[str, str]) -> Figure:
    """Draw average ranks on a line; bars join methods that the test cannot tell apart.

    With more methods than `MAX_BRACKETED` each gets a line of its own, best on top, and the
    band within one critical difference of ours is shaded.

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
    ranks = found.nemenyi.average_ranks
    bracketed = len(ranks) <= MAX_BRACKETED
    figure = _bracketed(found, families) if bracketed else _listed(found, families)
    figure.suptitle(
        f"Critical difference (Nemenyi, α = {found.nemenyi.alpha:g}): "
        f"CD = {found.nemenyi.cd:.2f}\n{len(ranks)} methods, "
        f"{len(found.friedman.datasets)} datasets; Friedman χ²({found.friedman.degrees_of_freedom})"
        f" = {found.friedman.chi2:.1f}, p = {found.friedman.p:.3g}"
        f" (ties corrected: {found.friedman.chi2_tie_corrected:.1f},"
        f" p = {found.friedman.p_tie_corrected:.3g})",
        fontsize=10,
    )
    return figure


def indistinct_groups(ranks: Mapping[str, float], cd: float) -> list[tuple[str, str]]:
    """First and last method of each longest run of methods less than `cd` apart.

    Parameters
    ----------
    ranks : mapping of str to float
        Average ranks, best first.
    cd : float
        Critical difference.

    Returns
    -------
    list of (str, str)
        Runs of one method, and runs within a longer one, are left out.

    Examples
    --------
    >>> indistinct_groups({"a": 1.0, "b": 2.0, "c": 2.5, "d": 4.0}, 1.6)
    [('a', 'c'), ('c', 'd')]
    """
    names, groups, furthest = list(ranks), [], -1
    for i, first in enumerate(names):
        last = max(j for j in range(i, len(names)) if ranks[names[j]] - ranks[first] < cd)
        if last > i and last > furthest:
            groups.append((first, names[last]))
            furthest = last
    return groups


def _bracketed(found: Statistics, families: Mapping[str, str]) -> Figure:
    ranks, cd = found.nemenyi.average_ranks, found.nemenyi.cd
    names, k = list(ranks), len(ranks)
    groups = indistinct_groups(ranks, cd)
    left, right = names[: (k + 1) // 2], names[(k + 1) // 2 :]
    step, bar_step = 0.34, 0.16
    bars_end = 0.25 + bar_step * len(groups)
    depth = bars_end + step * len(left) + 0.2
    figure = new_figure(8.6, 1.9 + 0.85 * depth)
    axis = figure.subplots()
    axis.set(xlim=(1 - 0.38 * k, k + 0.38 * k), ylim=(depth, -1.1))
    axis.set_axis_off()
    axis.plot([1, k], [0, 0], color=BLACK, linewidth=1.2)
    for tick in range(1, k + 1):
        axis.plot([tick, tick], [0, -0.08], color=BLACK, linewidth=1)
        axis.text(tick, -0.14, str(tick), ha="center", va="bottom", fontsize=9)
    _scale(axis, 1, min(cd, k - 1), -0.72, "" if cd <= k - 1 else " (wider than the axis)", cd)
    for side, names, edge in (("right", left, 1), ("left", right[::-1], k)):
        sign = -1 if side == "right" else 1
        for place, name in enumerate(names):
            y = bars_end + step * (place + 0.5)
            end = edge + sign * 0.05 * k
            colour, marker, _ = family_style(families[name])
            axis.plot([ranks[name], ranks[name], end], [0, y, y], color=GREY, linewidth=0.8)
            _dot(axis, ranks[name], 0, colour, marker)
            ours = name == found.wilcoxon.ours
            axis.text(
                end + sign * 0.02 * k,
                y,
                f"{name}  {ranks[name]:.2f}" if side == "right" else f"{ranks[name]:.2f}  {name}",
                ha=side,
                va="center",
                fontsize=9,
                fontweight="bold" if ours else "normal",
            )
    for place, (first, last) in enumerate(groups):
        y = 0.25 + bar_step * place
        axis.plot(
            [ranks[first] - 0.03, ranks[last] + 0.03],
            [y, y],
            color=BLACK,
            linewidth=3.5,
            solid_capstyle="butt",
        )
    family_legend(
        figure,
        [families[name] for name in ranks],
        loc="outside lower center",
        ncols=4,
        fontsize=9,
    )
    return figure


def _listed(found: Statistics, families: Mapping[str, str]) -> Figure:
    ranks, cd = found.nemenyi.average_ranks, found.nemenyi.cd
    ours = found.wilcoxon.ours
    names, k = list(ranks), len(ranks)
    figure = new_figure(9, 1.7 + 0.215 * k)
    axis = figure.subplots()
    axis.axvspan(
        max(0, ranks[ours] - cd), min(k + 0.5, ranks[ours] + cd), color=PALE, alpha=0.5, linewidth=0
    )
    for place, name in enumerate(names):
        colour, marker, _ = family_style(families[name])
        axis.plot([0, ranks[name]], [place, place], color=PALE, linewidth=0.8, zorder=1)
        _dot(axis, ranks[name], place, colour, marker)
        worse = "  +" if name in found.nemenyi.worse_than_ours else ""
        axis.text(
            ranks[name] + 0.012 * k, place, f" {ranks[name]:.1f}{worse}", va="center", fontsize=8
        )
    axis.set(
        xlim=(0, k + 0.5),
        ylim=(k - 0.3, -2.6),
        xlabel=f"average rank (lower is better; + significantly worse than {ours})",
    )
    axis.set_yticks(range(k), names, fontsize=8)
    axis.get_yticklabels()[names.index(ours)].set_fontweight("bold")
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    if ranks[ours] + cd <= k + 0.5:
        _scale(axis, ranks[ours], cd, -1.2, f" from {ours}", cd)
    else:
        _scale(axis, max(0.0, k + 0.5 - cd), min(cd, k + 0.5), -1.2, "", cd)
    family_legend(
        figure,
        [families[name] for name in names],
        loc="outside lower center",
        ncols=4,
        fontsize=9,
    )
    return figure


def _dot(axis: Any, x: float, y: float, colour: str, marker: str) -> None:
    axis.plot(
        x,
        y,
        marker=marker,
        color=colour,
        markersize=10 if marker == "*" else 7,
        markeredgecolor=BLACK,
        markeredgewidth=0.5,
        clip_on=False,
        zorder=3,
    )


def _scale(axis: Any, start: float, length: float, y: float, suffix: str, cd: float) -> None:
    """The length of the critical difference, as a bracket with its name above."""
    gap = -0.012 * abs(axis.get_ylim()[0] - axis.get_ylim()[1])
    axis.annotate(
        "",
        (start, y),
        (start + length, y),
        arrowprops={
            "arrowstyle": "|-|,widthA=0.4,widthB=0.4",
            "color": VERMILION,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )
    axis.text(
        start + length / 2,
        y + gap,
        f"CD = {cd:.2f}{suffix}",
        ha="center",
        va="bottom",
        color=VERMILION,
        fontsize=9,
    )
