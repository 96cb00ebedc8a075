"""Pictures of explanations: rows by columns as a heatmap, and all rows together as bars."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabnsm.container import atomic_write
from tabnsm.errors import MissingExtraError

# Of the palette by Okabe and Ito; grey for what is not a column of its own.
_BLUE, _GREY = "#0072B2", "#999999"
_LONGEST_LABEL = 28


def require_matplotlib() -> None:
    """Raise `MissingExtraError` before long work if no picture can be drawn after it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("plot", "Pictures") from error


def plot_heatmap(
    attributions: np.ndarray,
    predictions: np.ndarray,
    columns: Sequence[str],
    importance: np.ndarray,
    stem: str | Path,
    *,
    top: int = 30,
) -> list[Path]:
    """Draw the attributions of some rows: the paper's heatmap.

    Rows are sorted by prediction, columns by importance. Of more than `top` columns the rest
    share one, which shows the strongest of them in each row.

    Parameters
    ----------
    attributions : ndarray of shape (n_rows, n_columns)
        In [0, 1].
    predictions : ndarray of shape (n_rows,)
    columns : sequence of str
    importance : ndarray of shape (n_columns,)
        Over all rows, also those that are not drawn.
    stem : str or Path
        Files to write, without ".png" and ".svg".
    top : int, default 30
        Columns to show by name.

    Returns
    -------
    list of Path
        The files.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    by_prediction = np.argsort(predictions, kind="stable")
    shown, rest = _top_columns(importance, top)
    cells = attributions[np.ix_(by_prediction, shown)]
    labels = [short_label(columns[k]) for k in shown]
    if len(rest):
        strongest = attributions[np.ix_(by_prediction, rest)].max(axis=1, keepdims=True)
        cells = np.concatenate([cells, strongest], axis=1)
        labels.append(f"strongest of {count_of(len(rest), 'other')}")
    n_rows, n_shown = cells.shape

    size = (max(5.0, 2.6 + 0.29 * n_shown), min(max(3.4, 2.4 + 0.1 * n_rows), 6.4))
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(
        cells, aspect="auto", origin="lower", cmap="viridis", vmin=0, vmax=1, interpolation="none"
    )
    if len(rest):
        axis.axvline(n_shown - 1.5, color="white", linewidth=2)
    is_short = sum(map(len, labels)) < 8 * size[0]
    axis.set_xticks(range(n_shown), labels, rotation=0 if is_short else 90, fontsize=8)
    ticks = np.unique(np.linspace(0, n_rows - 1, min(n_rows, 7)).round().astype(int))
    ordered = predictions[by_prediction]
    axis.set_yticks(ticks, [plain_number(ordered[k]) for k in ticks], fontsize=8)
    axis.set_ylabel(f"{count_of(n_rows, 'row')} by prediction (values at the ticks)")
    axis.set_title("Attribution of each column, row by row", fontsize=11)
    figure.colorbar(
        image, ax=axis, label="attribution; the row's strongest column is 1", shrink=0.8, pad=0.02
    )
    return _save(figure, stem)


def plot_importance(
    columns: Sequence[str],
    importance: np.ndarray,
    n_rows: int,
    stem: str | Path,
    *,
    top: int = 30,
) -> list[Path]:
    """Draw the mean share of each column in the attribution of a row, as bars.

    Parameters
    ----------
    columns : sequence of str
    importance : ndarray of shape (n_columns,)
        Adds up to 1.
    n_rows : int
        Rows that it is the mean of.
    stem : str or Path
        Files to write, without ".png" and ".svg".
    top : int, default 30
        Columns with a bar of their own; the rest share one, which adds them up.

    Returns
    -------
    list of Path
        The files.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    shown, rest = _top_columns(importance, top)
    shares = [100 * float(importance[k]) for k in shown]
    labels = [short_label(columns[k]) for k in shown]
    colours = [_BLUE] * len(shown)
    if len(rest):
        shares.append(100 * float(importance[rest].sum()))
        labels.append(f"{count_of(len(rest), 'other column')} together")
        colours.append(_GREY)

    figure = Figure(figsize=(7.2, 1.5 + 0.24 * len(shares)), dpi=130, layout="constrained")
    axis = figure.subplots()
    # Many small columns add up to a bar that would squeeze all others: it is cut off then.
    limit = 1.15 * max(shares[: len(shown)])
    is_cut = shares[-1] > 1.5 * limit
    drawn = [min(share, limit) if is_cut else share for share in shares]
    digits = 2 if max(shares) < 10 else 1
    texts = [f"{share:.{digits}f}" for share in shares]
    bars = axis.barh(range(len(shares)), drawn, color=colours, height=0.75)
    if is_cut:
        where: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 8, "color": "white"}
        axis.text(0.98 * limit, len(shares) - 1, f"{texts[-1]} (cut off)", **where)
        texts[-1] = ""
    axis.set_xlim(0, limit if is_cut else 1.1 * (max(drawn) or 1))  # all zero in a flat model
    axis.bar_label(bars, texts, padding=3, fontsize=8)
    axis.set_yticks(range(len(shares)), labels, fontsize=8)
    axis.set_ylim(len(shares) - 0.4, -0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("share of the attribution, %")
    axis.set_title(f"Columns by attribution, mean of {count_of(n_rows, 'row')}", fontsize=11)
    return _save(figure, stem)


def plain_number(value: float) -> str:
    """Four digits at most, thousands with commas, no exponent where it can be helped.

    Examples
    --------
    >>> [plain_number(value) for value in (732_234.5, 0.25, 12.3456, 3e-9)]
    ['732,234', '0.25', '12.35', '3e-09']
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _top_columns(importance: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns to show, most important first, and the rest."""
    order = np.argsort(-importance, kind="stable")
    return order[:top], order[top:]


def count_of(number: int, noun: str) -> str:
    """A number with its noun.

    Examples
    --------
    >>> count_of(1, "row"), count_of(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_label(name: str, longest: int = _LONGEST_LABEL) -> str:
    """A name on one line, cut where it is too long, for matplotlib.

    Examples
    --------
    >>> short_label("price in $", 6)
    'price…'
    """
    name = " ".join(name.split())
    if len(name) > longest:
        name = name[: longest - 1].rstrip() + "…"
    return name.replace("$", r"\$")  # two of them would start a formula


def _save(figure: Any, stem: str | Path) -> list[Path]:
    import matplotlib

    paths = []
    for kind in ("png", "svg"):
        path = Path(f"{stem}.{kind}")
        buffer = io.BytesIO()
        # The same picture in the same bytes; a name in a script that the font lacks is no news.
        with matplotlib.rc_context({"svg.hashsalt": "tabnsm"}), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
        atomic_write(path, buffer.getvalue())
        paths.append(path)
    return paths
