"""How predictions differ from the truth: points, residuals, calibration, coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm.columns.values import column_values
from tabnsm.metrics import interval_metrics

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor
    from tabnsm.tables import Table

MAX_POINTS, N_BINS, N_GROUPS = 1500, 20, 10
MAX_COLUMNS = 6
LEVELS = (0.5, 0.8, 0.9, 0.95)


def scatter(truth: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
    """Some points of prediction against truth.

    Parameters
    ----------
    truth, prediction : ndarray of shape (n_rows,)

    Returns
    -------
    dict
        `truth` and `prediction` of at most `MAX_POINTS` rows, and `n_rows`.
    """
    rows = np.arange(len(truth))
    if len(rows) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MAX_POINTS, replace=False))
    return {
        "n_rows": len(truth),
        "truth": truth[rows].tolist(),
        "prediction": prediction[rows].tolist(),
    }


def residuals_by_column(
    model: FittedRegressor,
    table: Table,
    truth: np.ndarray,
    prediction: np.ndarray,
    most_important: np.ndarray,
) -> list[dict[str, Any]]:
    """Residuals by decile of the prediction, then by the most important columns.

    Parameters
    ----------
    model : FittedRegressor
    table : Table
    truth, prediction : ndarray of shape (n_rows,)
    most_important : ndarray of int
        Positions of the columns.

    Returns
    -------
    list of dict
        Each with a `name` and `groups`, in which residuals are truth minus prediction.
    """
    residual = truth - prediction
    found = [{"name": "prediction", "groups": _by_number(prediction, residual)}]
    matched = model.encoder_.match(table)
    for position in most_important:
        spec = model.encoder_.specs[int(position)]
        if spec.kind in ("drop", "text") or len(found) > MAX_COLUMNS:
            continue
        values = column_values(matched, spec)
        groups = _by_number if values.dtype.kind == "f" else _by_string
        if spec.kind == "date":
            groups = _by_sorted
        found.append({"name": spec.name, "groups": groups(values, residual)})
    return found


def _by_number(values: np.ndarray, residual: np.ndarray) -> list[dict[str, Any]]:
    """A group per value if these are few, else groups of about equal size; missing ones last.

    Equal values are never apart.
    """
    known = np.isfinite(values)
    starts = np.unique(values[known])
    if len(starts) > N_GROUPS:
        starts = np.unique(np.quantile(values[known], np.arange(N_GROUPS) / N_GROUPS))
    place = np.searchsorted(starts, values, side="right") - 1
    groups = []
    for k in range(len(starts)):
        rows = known & (place == k)
        if rows.any():
            low, high = values[rows].min(), values[rows].max()
            label = _number(low) if low == high else f"{_number(low)} to {_number(high)}"
            groups.append(_group(label, residual[rows]))
    return groups + ([] if known.all() else [_group("missing", residual[~known])])


def _by_string(values: np.ndarray, residual: np.ndarray) -> list[dict[str, Any]]:
    """The most frequent strings, then all others."""
    names = np.array(["missing" if value is None else str(value) for value in values])
    distinct, counts = np.unique(names, return_counts=True)
    common = distinct[np.argsort(-counts, kind="stable")[: N_GROUPS - 1]]
    groups = [_group(str(name), residual[names == name]) for name in common]
    rest = ~np.isin(names, common)
    return groups + ([_group("all others", residual[rest])] if rest.any() else [])


def _by_sorted(values: np.ndarray, residual: np.ndarray) -> list[dict[str, Any]]:
    """Strings that sort by time, such as ISO dates, in groups of about equal size."""
    known = np.array([value is not None for value in values])
    order = np.flatnonzero(known)[np.argsort(values[known].astype(str), kind="stable")]
    groups = [
        _group(f"{values[part[0]]} to {values[part[-1]]}", residual[part])
        for part in np.array_split(order, N_GROUPS)
        if len(part)
    ]
    return groups + ([] if known.all() else [_group("missing", residual[~known])])


def _group(label: str, residual: np.ndarray) -> dict[str, Any]:
    n_rows = len(residual)
    return {
        "label": label,
        "n": n_rows,
        "mean": float(residual.mean()),
        "se": float(residual.std(ddof=1) / np.sqrt(n_rows)) if n_rows > 1 else 0.0,
        "rmse": float(np.sqrt((residual**2).mean())),
    }


def _number(value: float) -> str:
    return f"{value:.4g}"


def calibration(truth: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
    """Rows by the bin of their truth and of their prediction, of 20 bins of equal width.

    Parameters
    ----------
    truth, prediction : ndarray of shape (n_rows,)

    Returns
    -------
    dict
        `counts` (by truth, then prediction), `edges`, and the shares of rows in the `same` bin
        and `within_one`.
    """
    edges = np.linspace(truth.min(), truth.max(), N_BINS + 1)
    rows, columns = (
        np.clip(np.searchsorted(edges, values, side="right") - 1, 0, N_BINS - 1)
        for values in (truth, prediction)
    )
    counts = np.zeros((N_BINS, N_BINS), dtype=np.int64)
    np.add.at(counts, (rows, columns), 1)
    apart = np.abs(rows - columns)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "same": float((apart == 0).mean()),
        "within_one": float((apart <= 1).mean()),
    }


def predicted_intervals(model: FittedRegressor, table: Table) -> dict[float, np.ndarray]:
    """Intervals of every row by confidence level, (n, t, 2); only the levels that can be given.

    Parameters
    ----------
    model : FittedRegressor
    table : Table

    Returns
    -------
    dict of float to ndarray of shape (n, t, 2)
    """
    levels = [] if model.calibration_ is None else model.calibration_.reached(LEVELS)
    if not levels:
        return {}
    points, intervals = model.predict_interval(table, levels)
    intervals = intervals.reshape(len(points), -1, 2, len(levels))  # (n, t, 2, k)
    return {level: intervals[..., k] for k, level in enumerate(levels)}


def coverage(
    intervals: dict[float, np.ndarray], truth: np.ndarray, prediction: np.ndarray
) -> list[dict[str, Any]] | None:
    """Share of the rows inside intervals, overall and by tercile of width and of the prediction.

    Parameters
    ----------
    intervals : dict of float to ndarray of shape (n_rows, 2)
        By confidence level.
    truth, prediction : ndarray of shape (n_rows,)

    Returns
    -------
    list of dict or None
        One entry per level; None if there are no intervals.
    """
    if not intervals:
        return None
    found: list[dict[str, Any]] = []
    for level, limits in intervals.items():
        low, high = limits.T
        inside = (low <= truth) & (truth <= high)
        (entry,) = interval_metrics(truth, limits[:, :, None], [level])
        thirds = {
            "by_width": _by_tercile(high - low, inside),
            "by_prediction": _by_tercile(prediction, inside),
        }
        found.append(entry | thirds)
    return found


def _by_tercile(values: np.ndarray, inside: np.ndarray) -> list[float | None]:
    """Share of the rows inside, by third of the rows in the order of some values."""
    parts = np.array_split(inside[np.argsort(values, kind="stable")], 3)
    return [float(part.mean()) if len(part) else None for part in parts]
