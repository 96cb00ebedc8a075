"""Draw docs/architecture.png: the way from a table to a prediction."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BLUE, ORANGE, GREEN, GREY, INK = "#d6e6f4", "#fbe3c8", "#d5ecdc", "#eeeeee", "#222222"


def box(axes, x, y, width, height, text, colour, size=9.5):
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0.02,rounding_size=0.12",
            facecolor=colour,
            edgecolor=INK,
            linewidth=0.9,
        )
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size)


def arrow(axes, start, end, style="-|>"):
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle=style, mutation_scale=11, color=INK, linewidth=1)
    )


figure = Figure(figsize=(11.2, 3.9), dpi=150)
axes = figure.add_axes((0, 0, 1, 1))
axes.set(xlim=(0, 22.4), ylim=(0, 7.8))
axes.axis("off")

box(axes, 0.2, 5.3, 2.7, 0.9, "numbers, dates", GREY)
box(axes, 0.2, 3.9, 2.7, 0.9, "categories", GREY)
box(axes, 0.2, 2.5, 2.7, 0.9, "free text", GREY)
box(axes, 3.6, 5.3, 2.5, 0.9, "standardise,\ncalendar parts", BLUE, 8.5)
box(axes, 3.6, 3.9, 2.5, 0.9, "codes", BLUE)
box(axes, 3.6, 2.5, 2.5, 0.9, "frozen MiniLM,\n64 directions", BLUE, 8.5)
for y in (5.75, 4.35, 2.95):
    arrow(axes, (2.95, y), (3.55, y))
    arrow(axes, (6.15, y), (6.85, 4.35))
box(axes, 6.9, 3.5, 1.9, 1.7, "tokens\n$D \\times d_{tok}$", BLUE)

axes.add_patch(
    FancyBboxPatch(
        (9.3, 0.75),
        8.1,
        6.3,
        boxstyle="round,pad=0.02,rounding_size=0.15",
        facecolor="none",
        edgecolor="#888888",
        linestyle="--",
    )
)
axes.text(13.35, 7.3, "ASIM: adaptive sparse interaction", ha="center", fontsize=10)
box(axes, 9.6, 5.4, 3.1, 1.1, "window\n$d-s \\ldots d+s$", ORANGE, 8.8)
box(axes, 9.6, 3.8, 3.1, 1.1, "all blocks,\ncompressed", ORANGE, 8.8)
box(axes, 9.6, 2.2, 3.1, 1.1, "top $m$ blocks of\nthis row, in full", ORANGE, 8.8)
for y in (5.95, 4.35, 2.75):
    arrow(axes, (8.85, 4.35), (9.55, y))
    arrow(axes, (12.75, y), (13.2, 4.35))
arrow(axes, (11.15, 3.75), (11.15, 3.35))
axes.text(11.3, 3.56, "scores", fontsize=7.5, va="center")
box(axes, 13.25, 3.7, 1.2, 1.3, "gates", ORANGE)
box(axes, 14.95, 3.4, 2.2, 1.9, "Feature-\nToken\nMixing", ORANGE)
arrow(axes, (14.5, 4.35), (14.9, 4.35))
axes.plot([7.85, 7.85, 16.05], [3.45, 1.35, 1.35], color=INK, linewidth=1)
arrow(axes, (16.05, 1.35), (16.05, 3.35))
axes.text(11.9, 1.58, "residual blending $w_1, w_2, w_3$", ha="center", fontsize=8.5)

box(axes, 17.9, 3.4, 2.1, 1.9, "multi-stage\nhead", GREEN)
arrow(axes, (17.2, 4.35), (17.85, 4.35))
axes.plot([7.85, 7.85, 18.95], [5.25, 6.75, 6.75], color=INK, linewidth=1)
arrow(axes, (18.95, 6.75), (18.95, 5.35))
axes.text(19.1, 6.2, "parts of\ntokens", fontsize=8.5, va="center")
arrow(axes, (20.05, 4.35), (20.65, 4.35))
box(axes, 20.7, 3.8, 1.4, 1.1, "$\\hat{y}$", GREEN, 12)
axes.text(19.6, 1.5, "trained on Huber + GridLoss,\nrows drawn by RISE", ha="center", fontsize=8.5)
arrow(axes, (18.95, 2.1), (18.95, 3.35), "<|-")

figure.savefig(Path(__file__).with_name("architecture.png"))
