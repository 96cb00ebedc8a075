"""What can be read in a figure."""

from __future__ import annotations

import itertools

from matplotlib.figure import Figure
from matplotlib.text import Text


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def overlaps(figure: Figure, wanted: set[str]) -> list[tuple[str, str]]:
    """Pairs of these texts that cover each other."""
    figure.draw_without_rendering()
    found = [text for text in figure.findobj(Text) if text.get_text().strip() in wanted]
    # Of the text alone: an annotation's own extent has its line in it.
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in found]
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 2 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2
    ]
