"""Pictures of a fit; matplotlib is imported when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tabnsm.errors import MissingExtraError
from tabnsm.metrics import regression_metrics
from tabnsm.training.history import History

# Of the palette by Okabe and Ito, which people with any colour vision can tell apart.
_BLUE, _ORANGE = "#0072B2", "#D55E00"


def plot_fit(
    truth: np.ndarray,
    predictions: Mapping[str, np.ndarray],
    history: History,
    target: str,
    path: str | Path,
) -> None:
    """Draw predicted against actual values, one panel per method, beside the training curve.

    Parameters
    ----------
    truth : ndarray of shape (n_rows,)
        Actual values.
    predictions : mapping of str to ndarray of shape (n_rows,)
        Predicted values by name of the method; each gets a panel.
    history : History
        Of the first method's training.
    target : str
        Name of the target, for the axes.
    path : str or Path
        PNG file to write.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
        from matplotlib.ticker import LogLocator, NullFormatter
    except ImportError as error:
        raise MissingExtraError("plot", "Pictures") from error

    n_panels = len(predictions)
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
    figure = Figure(figsize=(4.6 * n_panels + 5.4, 4.8), dpi=130, layout=layout)
    axes = figure.subplots(1, n_panels + 1, squeeze=False)[0]
    # One far-off prediction must not squeeze all others into a corner.
    everything = np.concatenate([truth, *predictions.values()])
    margin = 0.03 * float(np.ptp(truth)) or 1.0
    low, high = np.quantile(everything, [0.0005, 0.9995])
    bounds = (min(low, truth.min()) - margin, max(high, truth.max()) + margin)
    drawn = [
        _draw_predictions(axis, truth, prediction, bounds, f"{name}, test rows", target)
        for axis, (name, prediction) in zip(axes[:-1], predictions.items(), strict=True)
    ]
    # The same colour means the same number of rows in every panel.
    most = max(float(cells.get_array().max()) for cells in drawn)
    for cells in drawn:
        cells.set_clim(1, max(most, 2))
    bar = figure.colorbar(drawn[-1], ax=list(axes[:-1]), label="rows", shrink=0.85, pad=0.01)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    _draw_history(axes[-1], history, next(iter(predictions)), target)
    figure.savefig(path)


def _draw_predictions(
    axis: Any,
    truth: np.ndarray,
    prediction: np.ndarray,
    bounds: tuple[float, float],
    title: str,
    target: str,
) -> Any:
    metrics = regression_metrics(truth, prediction)
    cells = axis.hexbin(
        truth,
        prediction,
        gridsize=30,
        extent=(*bounds, *bounds),
        mincnt=1,
        bins="log",
        cmap=_blues(),
        linewidths=0.1,
    )
    axis.plot(bounds, bounds, color=_ORANGE, linewidth=1.5, label="prediction = actual")
    axis.set(
        xlim=bounds,
        ylim=bounds,
        aspect="equal",
        xlabel=f"actual {target}",
        ylabel=f"predicted {target}",
        title=f"{title}\nRMSE {metrics['rmse']:.4g}, R² {metrics['r2']:.3f}",
    )
    axis.legend(loc="upper left", frameon=False)
    return cells


def _blues() -> Any:
    """One hue that gets darker; its palest end is left off, to stand out from the paper."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    return ListedColormap(matplotlib.colormaps["Blues"](np.linspace(0.3, 1.0, 256)))


def _draw_history(axis: Any, history: History, name: str, target: str) -> None:
    from matplotlib.ticker import MaxNLocator

    epochs = [record.epoch for record in history]
    scores = [record.validation_rmse for record in history]
    best = history.best
    axis.plot(epochs, scores, color=_BLUE, marker="o", markersize=3.5, linewidth=1.5)
    label = f"kept: epoch {best.epoch}, RMSE {best.validation_rmse:.4g}"
    axis.plot(best.epoch, best.validation_rmse, "D", color=_ORANGE, markersize=8, label=label)
    axis.legend(loc="upper right", frameon=False)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set(
        xlim=(0.5, len(epochs) + 0.5),
        xlabel="epoch",
        ylabel=f"validation RMSE of {target}",
        title=f"Training of {name}\n{history[-1].seconds:.0f} s, {len(history)} epochs",
    )
