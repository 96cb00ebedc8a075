"""Pictures of contributions that add up: one row as a waterfall, many rows as a beeswarm."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.errors import InvalidOptionError
from tabnsm.plotting import write_figure
from tabnsm.plotting_attribution import count_of, plain_number, require_matplotlib, short_label

if TYPE_CHECKING:
    from tabnsm.attribution import Explanation

# Of the palette by Okabe and Ito: blue lowers a prediction, vermilion raises it.
_LOWER, _RAISE, _GREY = "#0072B2", "#D55E00", "#999999"
_MAX_POINTS = 1000  # of a column in a beeswarm; more take long to draw and hide each other
_MAX_VALUE = 18  # characters of a value beside its column


def plot_waterfall(
    explanation: Explanation, row: int = 0, *, top: int = 10, path: str | Path | None = None
) -> Any:
    """Draw how the columns lead from the base value to the prediction of one row.

    Parameters
    ----------
    explanation : Explanation
        Of the method "integrated".
    row : int, default 0
        Number of the row.
    top : int, default 10
        Columns with a bar of their own; the others share one.
    path : str, Path or None, default None
        File to write; None writes none.

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    labels, parts, base = _waterfall_steps(explanation, row, top)
    edges = base + np.concatenate([[0.0], np.cumsum(parts)])
    figure = Figure(figsize=(7.6, 1.7 + 0.34 * len(parts)), dpi=130, layout="constrained")
    axis = figure.subplots()
    for k, part in enumerate(parts):
        colour = _RAISE if part >= 0 else _LOWER
        axis.barh(k, part, left=edges[k], color=colour, height=0.72)
        axis.plot([edges[k + 1]] * 2, [k - 0.4, k + 1.4], color="0.6", linewidth=0.8, zorder=0)
    low, high = edges.min(), edges.max()
    margin = 0.16 * ((high - low) or abs(base) or 1.0)
    for k, part in enumerate(parts):
        at_right = part >= 0
        axis.annotate(
            f"{'+' if at_right else '−'}{plain_number(abs(part))}",
            (max(edges[k], edges[k + 1]) if at_right else min(edges[k], edges[k + 1]), k),
            xytext=(4 if at_right else -4, 0),
            textcoords="offset points",
            ha="left" if at_right else "right",
            va="center",
            fontsize=8,
        )
    axis.set_xlim(low - margin, high + margin)
    axis.set_ylim(-0.7, len(parts) - 0.3)
    axis.set_yticks(range(len(parts)), labels, fontsize=8)
    axis.axvline(base, color="0.4", linewidth=0.8, linestyle=":")
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel(f"prediction (from a base value of {plain_number(base)})")
    axis.set_title(f"Row {row}: prediction {plain_number(edges[-1])}", fontsize=11)
    return _finish(figure, path)


def _waterfall_steps(
    explanation: Explanation, row: int, top: int
) -> tuple[list[str], np.ndarray, float]:
    """Labels and parts from the smallest to the largest, the rest first; and the base value."""
    if explanation.base_values is None:
        raise InvalidOptionError(
            "A waterfall needs contributions that add up, got those of "
            f'method={explanation.method!r}. Call explain with method="integrated".'
        )
    n_rows = len(explanation)
    if not -n_rows <= row < n_rows:
        raise InvalidOptionError(
            f"row must be a number of one of the {count_of(n_rows, 'explained row')}, got {row}."
        )
    if top < 1:
        raise InvalidOptionError(f"top must be >= 1, got {top}.")
    values = np.asarray(explanation.contributions[row], dtype=np.float64)
    order = np.argsort(-np.abs(values), kind="stable")
    shown, rest = order[:top], order[top:]
    labels = [_with_value(explanation, row, int(k)) for k in shown]
    parts = list(values[shown])
    if len(rest):
        labels.append(count_of(len(rest), "other column"))
        parts.append(values[rest].sum())
    return labels[::-1], np.array(parts[::-1]), float(explanation.base_values[row])


def _with_value(explanation: Explanation, row: int, column: int) -> str:
    name = short_label(explanation.columns[column])
    if not explanation.column_values:
        return name
    value = explanation.column_values[column][row]
    if value is None or value != value:
        return f"{name}: missing"
    if not isinstance(value, str):
        return f"{name} = {plain_number(float(value))}"
    return f"{name} = {short_label(value, _MAX_VALUE)}"


def plot_beeswarm(
    explanation: Explanation, *, top: int = 15, path: str | Path | None = None
) -> Any:
    """Draw the contributions of the most important columns, one point per row.

    Points that would hide each other are moved apart. The colour is the rank of the value within
    its column; strings and missing values are grey. Of more than 1,000 rows a sample is drawn.

    Parameters
    ----------
    explanation : Explanation
    top : int, default 15
        Columns to show.
    path : str, Path or None, default None
        File to write; None writes none.

    Returns
    -------
    matplotlib.figure.Figure
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    if top < 1:
        raise InvalidOptionError(f"top must be >= 1, got {top}.")
    if not len(explanation):
        raise InvalidOptionError("A beeswarm needs at least 1 explained row, got none.")
    size = np.abs(np.asarray(explanation.contributions, dtype=np.float64)).mean(axis=0)
    shown = np.argsort(-size, kind="stable")[:top]
    rows = np.arange(len(explanation))
    if len(rows) > _MAX_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, _MAX_POINTS, replace=False))
    figure = Figure(figsize=(7.6, 1.9 + 0.36 * len(shown)), dpi=130, layout="constrained")
    axis = figure.subplots()
    drawn: Any = None
    for place, column in enumerate(shown):
        values = np.asarray(explanation.contributions[rows, column], dtype=np.float64)
        rank = _ranks(explanation, rows, int(column))
        height = place + _spread(values)
        known = np.isfinite(rank)
        axis.scatter(values[~known], height[~known], s=7, color=_GREY, linewidths=0)
        where: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 1, "s": 7, "linewidths": 0}
        drawn = axis.scatter(values[known], height[known], c=rank[known], **where)
    axis.axvline(0, color="0.4", linewidth=0.8, zorder=0)
    labels = [short_label(explanation.columns[k]) for k in shown]
    axis.set_yticks(range(len(shown)), labels, fontsize=8)
    axis.set_ylim(len(shown) - 0.4, -0.6)
    axis.spines[["top", "right", "left"]].set_visible(False)
    unit = "the target's units" if explanation.base_values is not None else "standard deviations"
    axis.set_xlabel(f"contribution to the prediction, in {unit}")
    sampled = f" of {len(explanation):,}" if len(rows) < len(explanation) else ""
    axis.set_title(f"Contributions, {len(rows):,}{sampled} rows", fontsize=11)
    bar = figure.colorbar(drawn, ax=axis, ticks=[0, 1], shrink=0.7, pad=0.02)
    bar.ax.set_yticklabels(["low", "high"], fontsize=8)
    bar.set_label("value of the column, by rank", fontsize=8)
    return _finish(figure, path)


def _ranks(explanation: Explanation, rows: np.ndarray, column: int) -> np.ndarray:
    """Rank of each value within its column, from 0 to 1; NaN for strings and missing values."""
    ranks = np.full(len(rows), np.nan)
    if not explanation.column_values:
        return ranks
    values = explanation.column_values[column][rows]
    if values.dtype.kind == "f" and (known := np.isfinite(values)).any():
        distinct, place = np.unique(values[known], return_inverse=True)
        ranks[known] = place / max(1, len(distinct) - 1) if len(distinct) > 1 else 0.5
    return ranks


def _spread(values: np.ndarray, n_bins: int = 80) -> np.ndarray:
    """Shifts up and down that move points of alike value apart, within 0.4 of the middle."""
    span = float(np.ptp(values))
    if not span:
        bins = np.zeros(len(values), dtype=np.int64)
    else:
        bins = ((values - values.min()) / span * n_bins).astype(np.int64)
    order = np.argsort(bins, kind="stable")
    starts = np.searchsorted(bins[order], bins[order])
    place = np.empty(len(values))
    place[order] = np.arange(len(values)) - starts
    side = np.where(place % 2 == 0, 1.0, -1.0) * np.ceil(place / 2)
    shift: np.ndarray = side * (0.4 / max(1.0, np.abs(side).max(initial=0.0), 8.0))
    return shift


def _finish(figure: Any, path: str | Path | None) -> Any:
    if path is not None:
        write_figure(figure, Path(path))
    return figure
