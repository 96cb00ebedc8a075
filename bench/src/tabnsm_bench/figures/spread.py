"""Box plots of runs that differ in nothing but their seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tabnsm_bench.figures.style import BLACK, CYCLE, panels, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_spread(
    scores: Mapping[str, Mapping[str, Sequence[float]]], title: str, unit: str
) -> Figure:
    """Draw a box per variant, with every run as a dot.

    Boxes span the quartiles, whiskers reach 1.5 times as far at most, as in the paper.

    Parameters
    ----------
    scores : mapping of dataset to mapping of variant to sequence of float
        Scores of all runs; each dataset gets a panel of its own scale.
    title : str
        Headline.
    unit : str
        What the scores are.

    Returns
    -------
    matplotlib.figure.Figure
    """
    widest = max(len(values) for values in scores.values())
    figure, axes = panels(len(scores), width=max(2.6, 1.3 * widest + 0.8))
    rng = np.random.default_rng(0)
    for axis, (dataset, values) in zip(axes, scores.items(), strict=True):
        boxes = axis.boxplot(
            list(values.values()),
            widths=0.55,
            patch_artist=True,
            showfliers=False,
            medianprops={"color": BLACK, "linewidth": 1.5},
        )
        for place, (box, runs) in enumerate(zip(boxes["boxes"], values.values(), strict=True)):
            box.set(facecolor=CYCLE[place % len(CYCLE)], alpha=0.55)
            shifts = rng.uniform(-0.14, 0.14, len(runs))
            axis.plot(
                place + 1 + shifts, runs, "o", color=BLACK, markersize=3, alpha=0.7, linewidth=0
            )
        axis.set_xticks(
            range(1, len(values) + 1),
            [f"{name}\n{len(runs)} runs" for name, runs in values.items()],
            fontsize=8.5,
        )
        axis.set_title(dataset, fontsize=10)
        axis.set_ylabel(unit)
        axis.margins(y=0.08)
        quiet_axes(axis)
    figure.suptitle(title, fontsize=10)
    return figure
