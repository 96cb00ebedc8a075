"""Names beside points, placed so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Directions in which a name may stand from its point, right before left, and how far.
_DIRECTIONS = (
    (1.0, 0.0, "left"),
    (-1.0, 0.0, "right"),
    (0.7, 0.7, "left"),
    (0.7, -0.7, "left"),
    (-0.7, 0.7, "right"),
    (-0.7, -0.7, "right"),
    (0.0, 1.0, "center"),
    (0.0, -1.0, "center"),
)
_MARKER_COST = 0.3  # of covering a marker, against covering a name
_DISTANCES = (3.0, 8.0, 14.0, 22.0, 32.0, 44.0, 60.0)
Box = tuple[float, float, float, float]


def place_labels(
    figure: Figure,
    axis: Any,
    points: Sequence[tuple[float, float, str]],
    radii: Sequence[float],
    fontsize: float = 8.5,
) -> None:
    """Write each name at the nearest free place, with a thin line where that is not beside it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure, complete but for the names.
    axis : matplotlib.axes.Axes
        One of its axes.
    points : sequence of (x, y, name)
        Points in data coordinates.
    radii : sequence of float
        How far each point's own marker reaches, in points of 1/72 inch.
    fontsize : float, default 8.5
        Size of the names.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.textpath import TextPath

    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # names must not move what they were placed around
    pixels = figure.dpi / 72
    spots = axis.transData.transform([(x, y) for x, y, _ in points])
    # A name may cover no point and no other name, and had better not cover a marker.
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    reach = [radius * pixels for radius in radii]
    markers: list[Box] = [
        (x - r, y - r, x + r, y + r) for (x, y), r in zip(spots, reach, strict=True)
    ]
    frame: Box = tuple(axis.get_window_extent().extents)
    for own, ((x, y, name), spot, radius) in enumerate(zip(points, spots, radii, strict=True)):
        width = TextPath((0, 0), name, size=fontsize).get_extents().width
        size = ((width + 2) * pixels, 1.3 * fontsize * pixels)
        places = [
            (dx * (radius + far), dy * (radius + far), side, far)
            for far in _DISTANCES
            for dx, dy, side in _DIRECTIONS
        ]
        boxes = [
            _box(spot[0] + dx * pixels, spot[1] + dy * pixels, size, side)
            for dx, dy, side, _ in places
        ]
        costs = [
            sum(_overlap(box, other) for other in taken)
            + _MARKER_COST * sum(_overlap(box, other) for other in markers)
            + _outside(box, frame)
            for box in boxes
        ]
        best = costs.index(min(costs))
        dx, dy, side, far = places[best]
        taken.append(boxes[best])
        axis.annotate(
            name,
            (x, y),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=fontsize,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0}
            if far > _DISTANCES[1] or _nearest(boxes[best], spots) != own
            else None,
        )


def _box(x: float, y: float, size: tuple[float, float], side: str) -> Box:
    width, height = size
    left = x - {"left": 0.0, "right": width, "center": width / 2}[side]
    return (left, y - height / 2, left + width, y + height / 2)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def _nearest(box: Box, spots: Sequence[Any]) -> int:
    """The point that a reader would take a name for."""
    gaps = [
        max(box[0] - x, 0.0, x - box[2]) ** 2 + max(box[1] - y, 0.0, y - box[3]) ** 2
        for x, y in spots
    ]
    return gaps.index(min(gaps))


def _outside(box: Box, frame: Box) -> float:
    """How much of a box sticks out of the axes, weighed heavily."""
    whole = (box[2] - box[0]) * (box[3] - box[1])
    return 10 * (whole - _overlap(box, frame))
