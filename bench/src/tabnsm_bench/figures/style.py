"""Colours, markers and files that all figures share; matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm.container import atomic_write
from tabnsm.errors import MissingExtraError
from tabnsm.plotting_attribution import plain_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette by Okabe and Ito, which people with any colour vision can tell apart.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE = "#767676", "#D9D9D9"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK, YELLOW)
# More colours that differ, for many lines in one panel: the palette above, then shades between.
MANY = (
    *CYCLE[:-1],
    *("#882255", "#44AA99", "#999933", "#332288", "#AA4499", "#661100", "#6699CC", "#117733"),
    *("#DDCC77", "#888888", "#CC6677", "#88CCEE", "#4B0092"),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DPI = 150
_ALL_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_PAGE = 14.0  # inches; wider figures are read in parts

# Colour, marker and hatch of the paper's families: each alone tells them apart.
FAMILIES: dict[str, tuple[str, str, str]] = {
    "TabNSM": (VERMILION, "*", ""),
    "Classical": (BLACK, "o", ""),
    "Tree-based": (GREEN, "s", "//"),
    "MLP-style": (BLUE, "^", ".."),
    "Transformer": (PURPLE, "D", "xx"),
    "Retrieval": (ORANGE, "v", "||"),
    "Other": (SKY, "P", "\\\\"),
    "Foundation": (YELLOW, "X", "--"),
}
OUTSIDE = (GREY, "h", "++")  # methods that the paper does not have


def family_style(family: str) -> tuple[str, str, str]:
    """Colour, marker and hatch of a family.

    Examples
    --------
    >>> family_style("Tree-based")
    ('#009E73', 's', '//')
    """
    return FAMILIES.get(family, OUTSIDE)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, whose parts make room for each other.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plot", "Pictures") from error
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def save_figure(figure: Figure, folder: str | Path, name: str) -> tuple[Path, Path]:
    """Write a figure as PNG and as SVG, each atomically.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    folder : str or Path
        Made if it does not exist.
    name : str
        Name of the files without their ending.

    Returns
    -------
    png, svg : Path
    """
    import matplotlib

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.png", folder / f"{name}.svg"
    for path in paths:
        stream = io.BytesIO()
        # The same data must give the same file: no date, no random ids.
        with matplotlib.rc_context({"svg.hashsalt": name}):
            kind = path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(stream, format=kind, metadata=metadata)
        atomic_write(path, stream.getvalue())
    return paths


def headline(figure: Figure, text: str, fontsize: float = 10, width: float | None = None) -> None:
    """Title of a figure, broken into lines that fit it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    text : str
        The title; its own line breaks are kept.
    fontsize : float, default 10
        Size of its letters.
    width : float or None
        Inches that it may take; None takes nearly all of the figure's.
    """
    inches = width or 0.95 * figure.get_figwidth()
    n_letters = max(12, int(inches * 72 / (0.56 * fontsize)))
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part, n_letters)]
    figure.suptitle("\n".join(lines), fontsize=fontsize)


def quiet_axes(axis: Any, grid: str | None = "y") -> None:
    """Remove the box and draw a pale grid behind the data."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)
    if grid is not None:
        axis.grid(axis=grid, color=PALE, linewidth=0.6)


def plain_log_ticks(axis: Any) -> None:
    """Ticks of a logarithmic axis as plain numbers: 0.01, 1, 1,000 and not powers of ten.

    An axis that spans less than a decade has ticks between the powers, too.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    steps = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0) if high / low > 10 else _ALL_STEPS
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_formatter(NullFormatter())


def family_legend(target: Any, families: Iterable[str], **options: Any) -> None:
    """A legend of the families that occur, in the paper's order, on an axis or a figure."""
    from matplotlib.lines import Line2D

    handles = []
    for name in in_order(families):
        colour, marker, _ = family_style(name)
        handles.append(
            Line2D(
                [],
                [],
                color=colour,
                marker=marker,
                linestyle="",
                markersize=8,
                markeredgecolor=BLACK,
                markeredgewidth=0.5,
                label=name,
            )
        )
    target.legend(handles=handles, frameon=False, **options)


def legend_below(figure: Figure, axes: Sequence[Any]) -> None:
    """One legend of all axes below them, in as many columns as the figure is wide enough for."""
    handles: dict[str, Any] = {}
    for axis in axes:
        handles |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    longest = max(map(len, handles))
    inches = 0.8 + 0.085 * longest  # of an entry: its line, and its letters
    n_columns = max(1, min(len(handles), int(figure.get_figwidth() // inches)))
    # The panels keep their height.
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(handles) // n_columns))
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=n_columns, frameon=False
    )


def in_order(families: Iterable[str]) -> list[str]:
    """Each family once: the paper's in its order, then others.

    Examples
    --------
    >>> in_order(["Retrieval", "new", "TabNSM", "Retrieval"])
    ['TabNSM', 'Retrieval', 'new']
    """
    present = set(families)
    return [name for name in FAMILIES if name in present] + sorted(present - set(FAMILIES))


def grid_shape(n_panels: int, max_columns: int = 3) -> tuple[int, int]:
    """Rows and columns of a grid of panels, with as few empty places as can be.

    Examples
    --------
    >>> [grid_shape(n) for n in (1, 2, 4, 7)], grid_shape(4, max_columns=1)
    ([(1, 1), (1, 2), (2, 2), (3, 3)], (4, 1))
    """
    rows = -(-n_panels // max_columns)
    return rows, -(-n_panels // rows)


def panels(n_panels: int, width: float = 4.6, height: float = 3.6) -> tuple[Figure, Sequence[Any]]:
    """A figure with a grid of panels, and its axes; spare places are left empty.

    Parameters
    ----------
    n_panels : int
        Number of panels.
    width, height : float
        Size of a panel in inches; a page takes one to three side by side.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : sequence of matplotlib.axes.Axes
    """
    rows, columns = grid_shape(n_panels, max(1, min(3, int(_PAGE // width))))
    figure = new_figure(max(width * columns, 5.5), height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[n_panels:]:
        spare.set_axis_off()
    return figure, list(axes[:n_panels])
