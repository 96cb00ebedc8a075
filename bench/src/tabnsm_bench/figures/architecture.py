"""The network as a diagram, with the shapes and parameters of a real instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tabnsm.nn.model import TabNSM
from tabnsm.options import resolve_options
from tabnsm_bench.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_architecture(n_features: int = 390, preset: str = "default") -> Figure:
    """Draw the path of a row through the network.

    Parameters
    ----------
    n_features : int, default 390
        D, by default that of the paper's AQ.
    preset : str, default "default"
        Preset whose network is built to count its parameters.

    Returns
    -------
    matplotlib.figure.Figure
    """
    options = resolve_options({"preset": preset})
    config = options.architecture
    model = TabNSM(n_features, **options.to_dict()["architecture"])
    parts = {
        "tokens": _count(model.tokenizer),
        "attention": _count(model.interaction.attention),
        "mixer": 0 if model.interaction.mixer is None else _count(model.interaction.mixer),
        "head": _count(model.head),
    }
    d, half = config.d_token, (n_features * (1 + model.n_pools) + 1) // 2
    figure = new_figure(11.5, 4.6)
    axis = figure.subplots()
    axis.set(xlim=(0, 23), ylim=(1, 9.8))
    axis.set_axis_off()
    _frame(axis, 5.1, 1.4, 11.2, 8.0, "ASIM: adaptive sparse interaction")
    _box(axis, 0.2, 4.1, 1.9, 2.0, f"row x\n({n_features},)", GREY)
    _box(axis, 2.7, 4.1, 2.0, 2.0, f"tokens\n({n_features}, {d})\n{parts['tokens']:,}", BLUE)
    branches = (
        (6.7, f"window\n±{config.window_size} features"),
        (4.3, f"compressed blocks\nof {config.compress_block_size}"),
        (
            1.9,
            f"selected blocks\n{config.n_selected_blocks} × {config.selection_block_size} features",
        ),
    )
    for y, text in branches:
        _box(axis, 5.5, y, 3.0, 1.6, text, GREEN)
        _arrow(axis, (4.7, 5.1), (5.5, y + 0.8))
        _arrow(axis, (8.5, y + 0.8), (9.1, 5.1))
    _arrow(axis, (7.0, 4.3), (7.0, 3.5))
    axis.text(7.15, 3.9, "scores pick", fontsize=8, va="center")
    _box(
        axis,
        9.1,
        4.1,
        1.7,
        2.0,
        f"gates\n{config.n_heads} heads\n{parts['attention']:,}",
        GREEN,
    )
    _box(axis, 11.4, 4.1, 2.0, 2.0, f"U = w₁X + X̃\nFTM: Z\n{parts['mixer']:,}", ORANGE)
    _box(axis, 14.0, 4.1, 2.0, 2.0, f"w₂U + Z + w₃X\nmean of tokens\n({n_features},)", SKY)
    _arrow(axis, (2.1, 5.1), (2.7, 5.1))
    _arrow(axis, (10.8, 5.1), (11.4, 5.1))
    _arrow(axis, (13.4, 5.1), (14.0, 5.1))
    _frame(axis, 16.6, 1.4, 4.5, 8.0, f"head: {parts['head']:,}")
    if model.n_pools:
        axis.plot([3.7, 3.7, 18.15], [6.1, 8.7, 8.7], color=BLACK, linewidth=1)
        _arrow(axis, (18.15, 8.7), (18.15, 8.3))
        inputs = f"and {model.n_pools} of each token"
        axis.text(16.45, 8.95, inputs, fontsize=8, ha="right", va="center")
    stages = ((6.7, f"y₁ ({half},)"), (4.3, "y₂ (1,)"), (1.9, "y₃ (1,)"))
    for y, text in stages:
        _box(axis, 17.2, y, 1.9, 1.6, text, PURPLE)
        _arrow(axis, (16.0, 5.1), (17.2, y + 0.8))
        _arrow(axis, (19.1, y + 0.8), (19.6, 5.1))
    _arrow(axis, (18.15, 6.7), (18.15, 5.9))
    _arrow(axis, (18.15, 4.3), (18.15, 3.5))
    _box(axis, 19.6, 4.3, 1.2, 1.6, "fusion", PURPLE)
    _arrow(axis, (20.8, 5.1), (21.5, 5.1))
    _box(axis, 21.5, 4.3, 1.2, 1.6, "ŷ", VERMILION)
    total = sum(parameter.numel() for parameter in model.parameters())
    figure.suptitle(
        f"TabNSM, preset {preset}: {n_features} features, {total:,} parameters "
        "(numbers in boxes: shapes and parameters)",
        fontsize=10,
    )
    return figure


def _count(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _box(
    axis: Any, x: float, y: float, width: float, height: float, text: str, colour: str
) -> None:
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(
        FancyBboxPatch(
            (x + 0.08, y + 0.08),
            width - 0.16,
            height - 0.16,
            boxstyle="round,pad=0.08",
            facecolor=colour + "33",
            edgecolor=colour,
            linewidth=1.4,
        )
    )
    axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=8)


def _frame(axis: Any, x: float, y: float, width: float, height: float, name: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0.05",
            facecolor="none",
            edgecolor=GREY,
            linestyle="--",
            linewidth=1,
        )
    )
    axis.text(x + width / 2, y + height - 0.1, name, ha="center", va="top", fontsize=9)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": BLACK, "linewidth": 0.9})
