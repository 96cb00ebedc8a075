"""What GridLoss looks like: the soft index, and the loss against the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from tabnsm.functional.grid_loss import soft_index
from tabnsm_bench.figures.style import BLACK, CYCLE, new_figure, quiet_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DASHES = ("-", "--", "-.", ":")


def draw_grid_loss(
    n_grid_cells: int = 10, temperatures: Sequence[float] = (0.01, 0.05, 0.2, 1.0)
) -> Figure:
    """Draw the soft index on the grid from 0 to 1, and the normalised loss of one row.

    Parameters
    ----------
    n_grid_cells : int, default 10
        The paper's K; few, so that the steps can be seen.
    temperatures : sequence of float
        The paper's tau, in units of the range.

    Returns
    -------
    matplotlib.figure.Figure
    """
    x = torch.linspace(0, 1, 801, dtype=torch.float64)
    target = torch.tensor([0.4], dtype=torch.float64)
    figure = new_figure(9.6, 4)
    index_axis, loss_axis = figure.subplots(1, 2)
    for place, temperature in enumerate(temperatures):
        style = {
            "color": CYCLE[place % len(CYCLE)],
            "linestyle": _DASHES[place % len(_DASHES)],
            "label": f"τ = {temperature:g}",
        }
        index = soft_index(x, 0.0, 1.0, n_grid_cells, temperature)
        true = soft_index(target, 0.0, 1.0, n_grid_cells, temperature)
        index_axis.plot(x, index, **style)
        loss_axis.plot(x, (index - true).abs() / n_grid_cells, **style)
    loss_axis.plot(x, (x - target).abs(), color=BLACK, linewidth=0.8, label="absolute error")
    index_axis.set(
        xlabel="value x, in units of the range", ylabel="soft index b(x)", title="soft index"
    )
    loss_axis.set(
        xlabel="prediction",
        ylabel="loss × cell width",
        title=f"normalised loss at the target {float(target):g}",
    )
    for axis in (index_axis, loss_axis):
        axis.legend(frameon=False, fontsize=9)
        axis.title.set_fontsize(10)
        quiet_axes(axis, "both")
    figure.suptitle(f"GridLoss with K = {n_grid_cells} cells", fontsize=10)
    return figure
