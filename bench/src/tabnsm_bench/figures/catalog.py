"""Every figure by name: what it shows, its counterpart in the paper, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.figures import from_paper, from_results, from_studies
from tabnsm_bench.figures.architecture import draw_architecture
from tabnsm_bench.figures.data import FigureData
from tabnsm_bench.figures.grid_loss_shape import draw_grid_loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE = "none"


@dataclass(frozen=True)
class FigureKind:
    """One kind of figure.

    Parameters
    ----------
    name : str
        As on the command line, and of its files.
    shows : str
        What it shows, in a short phrase.
    counterpart : str
        Figure or table of the paper that it corresponds to.
    draw : callable
        From `FigureData` to the figure.
    draw_paper : callable or None
        The same from the paper's own figures, where it prints them.
    """

    name: str
    shows: str
    counterpart: str
    draw: Callable[[FigureData], Figure]
    draw_paper: Callable[[], Figure] | None = None


def _architecture(data: FigureData) -> Figure:
    return draw_architecture(preset=data.preset)


def _grid_loss(data: FigureData) -> Figure:
    return draw_grid_loss()


_KINDS = (
    FigureKind(
        "architecture",
        "the network, with shapes and parameters",
        "overview of the architecture",
        _architecture,
        partial(draw_architecture, preset="paper"),
    ),
    FigureKind(
        "critical-difference",
        "average ranks and Nemenyi's critical difference",
        "critical difference diagram",
        from_results.critical_difference,
        from_paper.critical_difference,
    ),
    FigureKind(
        "average-ranks",
        "average ranks and corrected p",
        "average rank across nine benchmarks",
        from_results.average_ranks,
        from_paper.average_ranks,
    ),
    FigureKind(
        "rank-heatmap",
        "ranks by method and dataset",
        "full table of results",
        from_results.rank_heatmap,
        from_paper.rank_heatmap,
    ),
    FigureKind(
        "bubbles",
        "error, time and memory of all methods",
        "accuracy-efficiency trade-off",
        from_results.bubbles,
    ),
    FigureKind(
        "training-curves",
        "validation error over time",
        NONE,
        from_results.training_curves,
    ),
    FigureKind(
        "attention",
        "sparse attention, full attention, Mamba",
        "ablation of sparse interaction modeling",
        partial(from_studies.ablation, "attention"),
    ),
    FigureKind(
        "mixer",
        "with and without Feature-Token Mixing",
        "table: ablation of the FTM pathway",
        partial(from_studies.ablation, "mixer"),
        from_paper.mixer,
    ),
    FigureKind(
        "loss",
        "losses against GridLoss",
        "loss-function ablation",
        partial(from_studies.ablation, "loss"),
    ),
    FigureKind(
        "departures",
        "departures of the default from the paper",
        NONE,
        partial(from_studies.ablation, "departures"),
    ),
    FigureKind(
        "rise",
        "RISE on and off over seeds",
        "final validation metric with and without RISE",
        partial(from_studies.spread, "rise"),
    ),
    FigureKind(
        "seeds",
        "spread over seeds",
        "sensitivity to random seed initialization",
        partial(from_studies.spread, "seeds"),
    ),
    FigureKind(
        "temperature",
        "error over the temperature of GridLoss",
        "normalized RMSE as a function of tau",
        partial(from_studies.sensitivity, "temperature"),
    ),
    FigureKind(
        "blend",
        "error over the share of Huber",
        "normalized RMSE as a function of alpha",
        partial(from_studies.sensitivity, "blend"),
    ),
    FigureKind(
        "grid-cells",
        "error over the number of grid cells",
        "ablation protocol of GridLoss, K",
        partial(from_studies.sensitivity, "grid-cells"),
    ),
    FigureKind(
        "sparse",
        "error over the parameters of sparse attention",
        "component-wise ablation of sparse attention parameters",
        from_studies.sparse_parameters,
    ),
    FigureKind(
        "features",
        "error over the share of columns",
        "MSE versus feature fraction",
        partial(from_studies.fractions, "features"),
    ),
    FigureKind(
        "samples",
        "error over the share of training rows",
        "MSE versus training sample fraction",
        partial(from_studies.fractions, "samples"),
    ),
    FigureKind(
        "parameters",
        "parameters over the number of features",
        "parameter scaling with feature dimensionality",
        from_studies.parameters,
    ),
    FigureKind(
        "threshold",
        "training time to a level of error over rows",
        "training time versus sample size",
        from_studies.thresholds,
        from_paper.thresholds,
    ),
    FigureKind(
        "memory",
        "peak memory of training",
        "tables: memory during training",
        from_studies.memory,
        from_paper.memory,
    ),
    FigureKind(
        "temperature-by-target",
        "best temperature over IQR/std of the target",
        "table: tau and target distribution",
        from_studies.temperatures,
        from_paper.temperatures,
    ),
    FigureKind(
        "grid-loss",
        "shape of GridLoss",
        NONE,
        _grid_loss,
        draw_grid_loss,
    ),
)
FIGURES: dict[str, FigureKind] = {kind.name: kind for kind in _KINDS}


def find_figure(name: str) -> FigureKind:
    """The kind of figure of a name.

    Examples
    --------
    >>> find_figure("loss").counterpart
    'loss-function ablation'
    """
    if name not in FIGURES:
        raise InvalidOptionError(f"A figure must be one of {', '.join(FIGURES)}; got {name!r}.")
    return FIGURES[name]
