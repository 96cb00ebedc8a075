"""Which temperature of GridLoss suits which target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tabnsm_bench.figures.labels import place_labels
from tabnsm_bench.figures.style import BLUE, CYCLE, MARKERS, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class TargetPoint:
    """One dataset: IQR/std of its target, its best temperature, and its errors by temperature.

    `best` may be a label, as in the paper's table; then `curve` is empty.
    """

    name: str
    iqr_over_std: float
    best: float | str
    curve: Sequence[tuple[float, float]] = field(default_factory=tuple)


def draw_temperatures(points: Sequence[TargetPoint], title: str) -> Figure:
    """Draw the best temperature over IQR/std, beside the curves that it was read from.

    Parameters
    ----------
    points : sequence of TargetPoint
        Datasets.
    title : str
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
    """
    has_curves = any(point.curve for point in points)
    figure = new_figure(9.6 if has_curves else 5.8, 4.2)
    axes = figure.subplots(1, 2 if has_curves else 1, squeeze=False)[0]
    named = {point.best for point in points}
    labels: list[str] = [label for label in ("very small", "small", "large") if label in named]
    heights = [labels.index(p.best) if isinstance(p.best, str) else p.best for p in points]
    axis = axes[0]
    axis.plot([p.iqr_over_std for p in points], heights, "o", color=BLUE, markersize=8)
    if labels:
        axis.set_yticks(range(len(labels)), labels)
    else:
        axis.set_yscale("log")
    axis.set(xlabel="IQR / standard deviation of the target", ylabel="best temperature τ")
    axis.margins(0.2)
    quiet_axes(axis, "both")
    if has_curves:
        _draw_curves(axes[1], points)
    figure.suptitle(title, fontsize=10)
    place_labels(
        figure,
        axis,
        [(p.iqr_over_std, height, p.name) for p, height in zip(points, heights, strict=True)],
        [4.0] * len(points),
    )
    return figure


def _draw_curves(axis: Any, points: Sequence[TargetPoint]) -> None:
    for place, point in enumerate(points):
        if point.curve:
            xs, ys = zip(*point.curve, strict=True)
            axis.plot(
                xs,
                ys,
                color=CYCLE[place % len(CYCLE)],
                marker=MARKERS[place % len(MARKERS)],
                label=f"{point.name}, IQR/std {point.iqr_over_std:.2f}",
            )
    axis.set_xscale("log")
    axis.set(xlabel="temperature τ", ylabel="normalised RMSE (1 = best τ)")
    axis.legend(frameon=False, fontsize=8.5)
    quiet_axes(axis, "both")
