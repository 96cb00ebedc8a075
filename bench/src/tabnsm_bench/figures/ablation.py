"""Bars of an ablation: one panel per dataset, one bar per variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm_bench.figures.style import BLACK, BLUE, CYCLE, GREY, new_figure, panels, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Scores = Mapping[str, Mapping[str, Sequence[float]]]

# Means further apart than this ratio need a logarithmic axis.
MAX_LINEAR_RATIO = 8.0
# More bars than this, or longer names, are read better from top to bottom.
MAX_UPRIGHT, MAX_UPRIGHT_LENGTH = 7, 16
_HATCHES = ("", "//", "..", "xx", "\\\\", "++", "--", "||")


def draw_ablation(scores: Scores, reference: str, title: str, unit: str) -> Figure:
    """Draw the mean of each variant, its runs as dots, and the change against the reference.

    Parameters
    ----------
    scores : mapping of dataset to mapping of variant to sequence of float
        Scores of all runs.
    reference : str
        Variant that the others are compared with.
    title : str
        Headline.
    unit : str
        What the scores are.

    Returns
    -------
    matplotlib.figure.Figure
        Many variants, or some with long names, are drawn as changes alone, from top to bottom;
        else upright, with a logarithmic axis where the largest mean is many times the smallest.
    """
    variants = list(dict.fromkeys(name for values in scores.values() for name in values))
    if len(variants) > MAX_UPRIGHT or max(map(len, variants)) > MAX_UPRIGHT_LENGTH:
        return _draw_changes(scores, variants, reference, title, unit)
    figure, axes = panels(len(scores), width=max(3.4, 0.75 * len(variants) + 1.2))
    for axis, (dataset, values) in zip(axes, scores.items(), strict=True):
        _draw_panel(axis, variants, values, reference)
        axis.set_title(dataset, fontsize=10)
        axis.set_ylabel(unit)
    figure.suptitle(f"{title}\n(per cent: change against {reference})", fontsize=10)
    return figure


def _draw_panel(
    axis: Any, variants: Sequence[str], values: Mapping[str, Sequence[float]], reference: str
) -> None:
    means = {name: float(np.mean(runs)) for name, runs in values.items()}
    is_log = max(means.values()) > MAX_LINEAR_RATIO * min(means.values()) > 0
    for place, name in enumerate(variants):
        if name not in means:
            continue
        runs = values[name]
        axis.bar(
            place,
            means[name],
            width=0.72,
            color=CYCLE[place % len(CYCLE)],
            hatch=_HATCHES[place % len(_HATCHES)],
            edgecolor="white",
            linewidth=0.5,
        )
        _draw_runs(axis, place + _spots(len(runs)), runs)
        text = f"{means[name]:.4g}"
        if name != reference and means.get(reference):
            text += f"\n{_change(means[name] / means[reference])}"
        axis.annotate(
            text,
            (place, max(means[name], *runs)),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    if is_log:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.set_ylim(low, high * 2.2)
    else:
        axis.set_ylim(0, 1.22 * max(max(runs) for runs in values.values()))
    tilt = len(variants) > 3 or max(map(len, variants)) > 9
    axis.set_xticks(
        range(len(variants)),
        variants,
        fontsize=9,
        rotation=30 if tilt else 0,
        ha="right" if tilt else "center",
        rotation_mode="anchor" if tilt else None,
    )
    quiet_axes(axis)


def _draw_changes(
    scores: Scores, variants: Sequence[str], reference: str, title: str, unit: str
) -> Figure:
    """Changes in per cent from top to bottom, the datasets side by side."""
    others = [name for name in variants if name != reference]
    figure = new_figure(3.2 + 2.6 * len(scores), 1.6 + 0.34 * len(others))
    axes = figure.subplots(1, len(scores), sharey=True, squeeze=False)[0]
    for axis, (dataset, values) in zip(axes, scores.items(), strict=True):
        base = float(np.mean(values[reference])) if reference in values else float("nan")
        for place, name in enumerate(others):
            if name not in values:
                continue
            changes = 100 * (np.asarray(values[name]) / base - 1)
            axis.barh(place, changes.mean(), height=0.66, color=BLUE, alpha=0.75)
            _draw_runs(axis, changes, place + _spots(len(changes)))
        axis.axvline(0, color=GREY, linewidth=1)
        axis.set(xlabel=f"change of {unit} in %", ylim=(len(others) - 0.5, -0.5))
        axis.set_title(f"{dataset}\n{reference}: {base:.4g}", fontsize=10)
        axis.margins(x=0.1)
        axis.tick_params(axis="y", length=0)
        quiet_axes(axis, "x")
    axes[0].set_yticks(range(len(others)), others, fontsize=9)
    figure.suptitle(f"{title}\n(right of the line: worse than {reference})", fontsize=10)
    return figure


def _change(ratio: float) -> str:
    return f"× {ratio:.0f}" if ratio > 10 else f"{100 * (ratio - 1):+.1f} %"


def _spots(n_runs: int) -> np.ndarray:
    return np.linspace(-0.2, 0.2, n_runs) if n_runs > 1 else np.zeros(n_runs)


def _draw_runs(axis: Any, x: Any, y: Any) -> None:
    axis.plot(x, y, "o", color="white", markeredgecolor=BLACK, markersize=4, linewidth=0)
