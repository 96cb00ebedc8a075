"""Rows of a report: drawn, predicted, and described for one target after the other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.exceptions import DataConversionWarning

from tabnsm.errors import InvalidDataError
from tabnsm.metrics import regression_metrics
from tabnsm.report.comparison import compare
from tabnsm.report.errors_section import (
    calibration,
    coverage,
    predicted_intervals,
    residuals_by_column,
    scatter,
)
from tabnsm.report.rows_section import describe_rows
from tabnsm.training.rows import usable_rows

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable
    from tabnsm.fitted import FittedRegressor
    from tabnsm.tables import Table
    from tabnsm.target import Targets

MAX_TABLE_ROWS = 200


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows with targets, all or a sample, and their numbers among those that were given.

    Parameters
    ----------
    table : Table
    truth : dict of int to ndarray of shape (n_rows,)
        By place of the target in the model; NaN where a row lacks it.
    numbers : ndarray of int64, shape (n_rows,)
    n_given : int
    n_known : dict of int to int
        How many of those that were given have the target, by its place.
    """

    table: Table
    truth: dict[int, np.ndarray]
    numbers: np.ndarray
    n_given: int
    n_known: dict[int, int]

    @classmethod
    def draw(cls, model: FittedRegressor, X: Any, y: Any, name: str, max_rows: int) -> RowSample:
        """Rows that have a target, at most `max_rows` of them; `name` is what errors call `y`."""
        with warnings.catch_warnings():
            if model.target_.n_targets > 1:  # one column of a table is one of the targets
                warnings.simplefilter("ignore", DataConversionWarning)
            table, targets, _, kept = usable_rows(X, y, None, must_vary=False)
        places = _places(model, targets, name)
        numbers, values = np.flatnonzero(kept), targets.values
        n_known = dict(zip(places, (~np.isnan(values)).sum(axis=0).tolist(), strict=True))
        if len(numbers) > max_rows:
            chosen = np.random.default_rng(0).choice(len(numbers), max_rows, replace=False)
            chosen.sort()
            table, values, numbers = table.take(chosen), values[chosen], numbers[chosen]
        truth = {place: values[:, k] for k, place in enumerate(places)}
        return cls(table, truth, numbers, len(kept), n_known)


def _places(model: FittedRegressor, targets: Targets, name: str) -> list[int]:
    """Which of the model's targets are given: some of several by name, else all in order."""
    known = model.target_.names
    if model.target_.n_targets == 1 or known is None or targets.names is None:
        targets.in_order(None, model.target_.n_targets, name)
        return list(range(model.target_.n_targets))
    for found in targets.names:
        if found not in known:
            raise InvalidDataError(
                f"{name} must have targets of the model, {', '.join(map(repr, known))}, got "
                f"{found!r}."
            )
    return [known.index(found) for found in targets.names]


class TriedRows:
    """Rows of a report with their predictions.

    Parameters
    ----------
    model : FittedRegressor
    rows : RowSample
    train : RowSample or None
        Rows to train the compared methods on; None trains them on `rows` by cross-validation.
    """

    def __init__(self, model: FittedRegressor, rows: RowSample, train: RowSample | None) -> None:
        self.model, self.rows = model, rows
        prediction = model.predict(rows.table)
        self.prediction = prediction.reshape(len(prediction), -1)  # (n, t)
        self.encoded = model.encoder_.transform(rows.table)
        self.intervals = predicted_intervals(model, rows.table)
        self.train = train
        self.train_encoded = None if train is None else model.encoder_.transform(train.table)

    def describe(self, place: int, name: str, importances: np.ndarray) -> dict[str, Any]:
        """What a page shows of one target, on the rows that have it."""
        present = np.flatnonzero(~np.isnan(self.rows.truth[place]))
        if not len(present):
            raise InvalidDataError(
                f"The rows must have values of each target, got none of {name!r}."
            )
        table, numbers = self.rows.table.take(present), self.rows.numbers[present]
        truth, prediction = self.rows.truth[place][present], self.prediction[present, place]
        encoded = self.encoded.take(torch.from_numpy(present))
        most = np.argsort(-importances, kind="stable")
        intervals = {level: found[present, place] for level, found in self.intervals.items()}
        return {
            "target": name,
            "rows": {
                "used": len(truth),
                "given": self.rows.n_given,
                "known": self.rows.n_known[place],
                "table": MAX_TABLE_ROWS,
            },
            "metrics": regression_metrics(truth, prediction),
            "scatter": scatter(truth, prediction),
            "residuals": residuals_by_column(self.model, table, truth, prediction, most),
            "calibration": calibration(truth, prediction),
            "coverage": coverage(intervals, truth, prediction),
            "comparison": compare(self.model, encoded, truth, prediction, self._train_rows(place)),
            "table": describe_rows(
                self.model, table, numbers, truth, prediction, MAX_TABLE_ROWS, place
            ),
        }

    def _train_rows(self, place: int) -> tuple[EncodedTable, np.ndarray] | None:
        """Rows to train the compared methods on, if some have the target."""
        if self.train is None or self.train_encoded is None or place not in self.train.truth:
            return None
        truth = self.train.truth[place]
        present = np.flatnonzero(~np.isnan(truth))
        if not len(present):
            return None
        return self.train_encoded.take(torch.from_numpy(present)), truth[present]
