"""Every figure of the paper, from results or from what the paper prints, as PNG and SVG."""

from __future__ import annotations

from tabnsm_bench.figures.catalog import FIGURES, FigureKind, find_figure
from tabnsm_bench.figures.data import FigureData
from tabnsm_bench.figures.style import save_figure

__all__ = ["FIGURES", "FigureData", "FigureKind", "find_figure", "save_figure"]
