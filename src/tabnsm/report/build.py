"""Report: what a page shows of a model and rows with known targets, and the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabnsm._version import __version__
from tabnsm.container import atomic_write
from tabnsm.errors import InvalidOptionError
from tabnsm.metrics import regression_metrics
from tabnsm.report.comparison import compare
from tabnsm.report.data_section import describe_data
from tabnsm.report.errors_section import calibration, coverage, residuals_by_column, scatter
from tabnsm.report.page import render
from tabnsm.report.rows_section import describe_rows
from tabnsm.report.training_section import describe_options, describe_training
from tabnsm.training.rows import usable_rows

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor
    from tabnsm.tables import Table

MAX_ROWS = 10_000
MAX_TABLE_ROWS = 200


@dataclass(frozen=True, eq=False)
class Report:
    """One self-contained page, and the numbers on it.

    Parameters
    ----------
    data : dict
        All that the page shows, as JSON takes it.
    """

    data: dict[str, Any]

    def to_html(self) -> str:
        """The page; it loads nothing from elsewhere."""
        return render(self.data)

    def save(self, path: str | Path) -> None:
        """Write the page, as a whole or not at all.

        Parameters
        ----------
        path : str or Path
            Such as "report.html".

        Raises
        ------
        InvalidOptionError
            If the file cannot be written.
        """
        try:
            atomic_write(Path(path), self.to_html().encode())
        except OSError as error:
            raise InvalidOptionError(
                f"path must be a file that can be written, got {str(path)!r} ({error.strerror})."
            ) from error


def build_report(
    model: FittedRegressor,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    target_name: str | None = None,
    max_rows: int = MAX_ROWS,
) -> Report:
    """Try a model on rows, and collect what a page shows of it.

    Parameters
    ----------
    model : FittedRegressor
        Fitted on one target.
    X, y : as for `fit`
        Rows with known targets, as a rule such as the model was not trained on.
    X_train, y_train : as `X` and `y`, or None
        Rows that the models for comparison are trained on; None trains them on `X` by
        cross-validation.
    target_name : str or None
        What the page calls the target; None takes the name of `y`, if it has one.
    max_rows : int
        Rows that are used; of more, a sample.

    Returns
    -------
    Report
    """
    if (X_train is None) != (y_train is None):
        given = "X_train" if y_train is None else "y_train"
        raise InvalidOptionError(f"X_train and y_train must be given together, got only {given}.")
    if max_rows < 2:
        raise InvalidOptionError(f"max_rows must be >= 2, got {max_rows}.")
    n_targets = model.target_.n_targets
    if n_targets != 1:
        raise InvalidOptionError(
            f"A report must be of a model of one target, got {n_targets} targets. Fit a model of "
            "the one that the page is for."
        )
    rows = _RowSample.draw(X, y, max_rows)
    prediction = model.predict(rows.table)
    encoded = model.encoder_.transform(rows.table)
    others = None if X_train is None else _RowSample.draw(X_train, y_train, max_rows)
    importances = _importances(model, rows.table)
    most = np.argsort(-importances, kind="stable")
    comparison = compare(
        model,
        encoded,
        rows.truth,
        prediction,
        None if others is None else (model.encoder_.transform(others.table), others.truth),
    )
    return Report(
        {
            "version": __version__,
            "target": target_name or str(getattr(y, "name", None) or "target"),
            "rows": {"used": len(rows.truth), "given": rows.n_given, "table": MAX_TABLE_ROWS},
            "metrics": regression_metrics(rows.truth, prediction),
            "data": describe_data(model, rows.table, encoded, importances),
            "training": describe_training(model),
            "scatter": scatter(rows.truth, prediction),
            "residuals": residuals_by_column(model, rows.table, rows.truth, prediction, most),
            "calibration": calibration(rows.truth, prediction),
            "coverage": coverage(model, rows.table, rows.truth, prediction),
            "comparison": comparison,
            "table": describe_rows(
                model, rows.table, rows.numbers, rows.truth, prediction, MAX_TABLE_ROWS
            ),
            "options": describe_options(model),
        }
    )


def _importances(model: FittedRegressor, table: Table) -> np.ndarray:
    """Importances of the fit; models of earlier versions have none, and are asked here."""
    found = getattr(model, "feature_importances_", None)
    if found is not None:
        return np.asarray(found)
    from tabnsm.attribution import column_importances

    encoded = model.encoder_.transform(table)
    return column_importances(model.model_, model.encoder_, model.target_, encoded)


@dataclass(frozen=True, eq=False)
class _RowSample:
    """Rows with targets, all or a sample, and their numbers among those that were given."""

    table: Table
    truth: np.ndarray
    numbers: np.ndarray
    n_given: int

    @classmethod
    def draw(cls, X: Any, y: Any, max_rows: int) -> _RowSample:
        table, targets, _, kept = usable_rows(X, y, None, must_vary=False)
        numbers = np.flatnonzero(kept)
        n_given, truth = len(kept), targets.values[:, 0]
        if len(numbers) > max_rows:
            chosen = np.random.default_rng(0).choice(len(numbers), max_rows, replace=False)
            chosen.sort()
            table, truth, numbers = table.take(chosen), truth[chosen], numbers[chosen]
        return cls(table, truth, numbers, n_given)
