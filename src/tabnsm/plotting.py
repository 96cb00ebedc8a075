"""Pictures of a fit; matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabnsm.container import atomic_write
from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.metrics import regression_metrics
from tabnsm.training.history import History

# Of the palette by Okabe and Ito, which people with any colour vision can tell apart.
_BLUE, _ORANGE = "#0072B2", "#D55E00"
_NETWORKS = (_BLUE, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999", "#000000")


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


def plot_histories(histories: Sequence[History], path: str | Path | None = None) -> Any:
    """Draw validation, training loss and learning rate of every network, epoch by epoch.

    Parameters
    ----------
    histories : sequence of History
        One per network.
    path : str, Path or None, default None
        File to write, as a whole or not at all; its ending says the format. None writes none.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidOptionError
        If the file cannot be written, or is of a format that cannot be drawn.
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter
    except ImportError as error:
        raise MissingExtraError("plot", "Pictures") from error

    figure = Figure(figsize=(8.0, 7.2), dpi=130, layout="constrained")
    validation, loss, rate = figure.subplots(
        3, 1, sharex=True, gridspec_kw={"height_ratios": (3, 2, 1.4)}
    )
    for number, history in enumerate(histories):
        color = _NETWORKS[number % len(_NETWORKS)]
        _draw_network(validation, loss, rate, history, number, color)
    metric = histories[0].eval_metric.upper()
    n_epochs = max(len(history) for history in histories)
    validation.set(ylabel=f"validation {metric}", title=_title(histories), xlim=(0.5, n_epochs + 1))
    validation.plot([], [], "D", color="0.35", markersize=7, label="best epoch, which is kept")
    validation.plot([], [], ":", color="0.35", linewidth=0.8, label="learning rate halved")
    validation.legend(frameon=False, ncols=2 if len(histories) > 4 else 1, fontsize="small")
    loss.set(ylabel="training loss")
    rate.set(ylabel="learning rate", yscale="log", xlabel="epoch")
    rate.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    rate.yaxis.set_major_formatter("{x:g}")
    rate.yaxis.set_minor_formatter(NullFormatter())
    rate.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in (validation, loss, rate):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    if path is not None:
        write_figure(figure, Path(path))
    return figure


def _draw_network(
    validation: Any, loss: Any, rate: Any, history: History, number: int, color: str
) -> None:
    epochs = [record.epoch for record in history]
    scores = [history.metric_of(record) for record in history]
    # One epoch is a point, not a line.
    style = {"color": color, "linewidth": 1.4, "marker": "o", "markersize": 2.5}
    validation.plot(epochs, scores, label=f"network {number + 1}", **style)
    best = history.best
    validation.plot(best.epoch, history.metric_of(best), "D", color=color, markersize=7)
    loss.plot(epochs, [record.train_loss for record in history], **style)
    rates = [record.learning_rate for record in history]
    rate.step([*epochs, epochs[-1] + 1], [*rates, rates[-1]], where="post", color=color)
    for epoch, before, after in zip(epochs[1:], rates, rates[1:], strict=False):
        if after < before:
            validation.axvline(epoch, color=color, alpha=0.35, linewidth=0.8, linestyle=":")


def _title(histories: Sequence[History]) -> str:
    seconds = sum(history.seconds for history in histories)
    reason = histories[-1].stop_reason
    if len(histories) == 1:
        return f"1 network, {seconds:.0f} s of training\nstopped: {reason}"
    # Of several, each has stopped for a reason of its own, unless something ended the whole fit.
    ended = f"\nstopped: {reason.split('; ')[-1]}" if "networks trained" in reason else ""
    return f"{len(histories)} networks, {seconds:.0f} s of training{ended}"


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure as a whole or not at all; the ending of `path` says the format."""
    content = io.BytesIO()
    try:
        figure.savefig(content, format=path.suffix.removeprefix(".") or "png")
    except ValueError as error:
        raise InvalidOptionError(
            f"path must end in a format that can be drawn, such as .png, got {str(path)!r} "
            f"({error})."
        ) from error
    try:
        atomic_write(path, content.getvalue())
    except OSError as error:
        raise InvalidOptionError(
            f"path must be a file that can be written, got {str(path)!r} ({error.strerror})."
        ) from error
