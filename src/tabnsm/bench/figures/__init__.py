"""Every figure of the paper, from results or from what the paper prints, as PNG and SVG."""

from __future__ import annotations

from tabnsm.bench.figures.catalog import FIGURES, FigureKind, find_figure
from tabnsm.bench.figures.data import FigureData
from tabnsm.bench.figures.style import save_figure

__all__ = ["FIGURES", "FigureData", "FigureKind", "find_figure", "save_figure"]
