"""How much each column matters to a model, from pairs of rows that exchange its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from tabnsm.attribution.explanation import sum_by_column
from tabnsm.attribution.inputs import input_columns
from tabnsm.attribution.integrated import TokenPath
from tabnsm.attribution.tiles import mean_of, tiles
from tabnsm.columns.encoded import EncodedTable
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import eval_mode, predict_rows

if TYPE_CHECKING:
    from tabnsm.columns import TableEncoder
    from tabnsm.target import TargetModel

# Rows that are drawn, and columns whose values are exchanged; gradients estimate the others.
MAX_ROWS, MIN_ROWS, MAX_EXCHANGED = 128, 16, 32
MAX_TOKENS = 2**20  # rows times features times columns: a second or two
_POINTS = (0.25, 0.75)
# From the networks' predictions (n, t) and their rows to the model's predictions (n, t).
Blended = Callable[[np.ndarray, EncodedTable], np.ndarray]


def column_importances(
    model: TabNSM | Ensemble,
    encoder: TableEncoder,
    target: TargetModel,
    table: EncodedTable,
    blended: Blended | None = None,
    seconds_left: Callable[[], float] | None = None,
) -> np.ndarray:
    """Importance of each column of the fit, as in `expected_importances`.

    Parameters
    ----------
    model : TabNSM or Ensemble
    encoder : TableEncoder
    target : TargetModel
    table : EncodedTable
        Rows to draw from.
    blended : callable or None, default None
        What the whole model predicts where the networks predict this; None if they are all.
    seconds_left : callable or None, default None
        Of a time limit, which fewer rows keep to.

    Returns
    -------
    ndarray of float64, shape (n_columns,)
        In the order of the table; a column that was left out has 0, text columns that are joined
        have equal parts of what they have together.
    """
    names, column_of_feature = input_columns(encoder)
    found = expected_importances(
        model,
        target,
        table,
        column_of_feature,
        len(names),
        blended=blended,
        seconds_left=seconds_left,
    )
    positions = np.array(encoder.feature_columns, dtype=np.int64)
    importances = np.zeros(len(encoder.specs))
    for k, share in enumerate(found):
        position = int(positions[np.flatnonzero(column_of_feature == k)[0]])
        if position >= 0:
            importances[position] = share
            continue
        texts = [spec.position for spec in encoder.specs if spec.kind == "text"]
        importances[texts] = share / len(texts)
    return importances


def expected_importances(
    model: TabNSM | Ensemble,
    target: TargetModel,
    table: EncodedTable,
    column_of_feature: np.ndarray,
    n_columns: int,
    seed: int = 0,
    blended: Blended | None = None,
    seconds_left: Callable[[], float] | None = None,
) -> np.ndarray:
    """Importance of each column: what its values from another row change in a prediction.

    Rows are paired at random. The mean square of the change is what permuting the column adds to
    the squared error of an accurate model. Of more than `MAX_EXCHANGED` columns, the others are
    estimated from gradients between the pairs.

    Parameters
    ----------
    model : TabNSM or Ensemble
        Put into eval mode while this runs.
    target : TargetModel
    table : EncodedTable
        Rows to draw from; at most `MAX_ROWS` are used.
    column_of_feature : ndarray of int64, shape (n_features,)
        Column of each feature.
    n_columns : int
    seed : int, default 0
        Of the draw.
    blended : callable or None, default None
        As in `column_importances`; gradients are of the networks alone.
    seconds_left : callable or None, default None
        As in `column_importances`.

    Returns
    -------
    ndarray of float64, shape (n_columns,)
        Adds up to 1; zeros if no column matters.
    """
    n_exchanged = min(n_columns, MAX_EXCHANGED)
    affordable = MAX_TOKENS // (table.n_features * n_exchanged)
    n_rows = min(MAX_ROWS, max(MIN_ROWS, affordable), table.n_rows)
    drawn = np.random.default_rng(seed).choice(table.n_rows, n_rows, replace=False)
    pairs = RowPairs(model, target, table, drawn, column_of_feature, blended)
    with eval_mode(model):
        if seconds_left is not None:
            n_rows = pairs.affordable_rows(seconds_left, n_exchanged)
            pairs = RowPairs(model, target, table, drawn[:n_rows], column_of_feature, blended)
        if n_columns <= MAX_EXCHANGED:
            found = np.array([pairs.exchange(k) for k in range(n_columns)])
        else:
            found = pairs.estimate(n_columns)
            first = np.argsort(-found, kind="stable")[:n_exchanged]
            exact = np.array([pairs.exchange(int(k)) for k in first])
            estimated = found[first].sum()
            found *= exact.sum() / estimated if estimated > 0 else 0.0
            found[first] = exact
    total = found.sum()
    return found / total if 0 < total < np.inf else np.zeros(n_columns)


class RowPairs:
    """Rows of a table, each beside another one.

    Parameters
    ----------
    model : TabNSM or Ensemble
        In eval mode when it is used.
    target : TargetModel
    table : EncodedTable
    drawn : ndarray of int64
        Numbers of the rows; each has the one before it for a partner.
    column_of_feature : ndarray of int64, shape (n_features,)
    blended : callable or None, default None
        As in `column_importances`.
    """

    def __init__(
        self,
        model: TabNSM | Ensemble,
        target: TargetModel,
        table: EncodedTable,
        drawn: np.ndarray,
        column_of_feature: np.ndarray,
        blended: Blended | None = None,
    ) -> None:
        self.model = model
        self.blended = blended
        self.target = target
        self.column_of_feature = torch.from_numpy(column_of_feature)
        self.rows = table.gather(torch.from_numpy(drawn))  # (n, D)
        self.others = table.gather(torch.from_numpy(np.roll(drawn, 1)))
        self.prediction: np.ndarray | None = None

    def affordable_rows(self, seconds_left: Callable[[], float], n_exchanged: int) -> int:
        """Rows, at least `MIN_ROWS`, whose columns can be exchanged in the time that is left."""
        before = seconds_left()
        self._predict(self.rows)
        left = seconds_left()
        needed = 2 * n_exchanged * (before - left)  # as many again for gradients
        n_rows = len(self.rows)
        if left > needed:
            return n_rows
        affordable = int(n_rows * left / needed) if needed > 0 else 0
        return min(max(affordable, MIN_ROWS), n_rows)

    def exchange(self, column: int) -> float:
        """Mean square of what another row's values of a column change, over the variance."""
        if self.prediction is None:
            self.prediction = self._predict(self.rows)
        of_column = self.column_of_feature == column
        changed = torch.where(of_column, self.others, self.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            variance = self.prediction.var(axis=0)
            square = ((self._predict(changed) - self.prediction) ** 2).mean(axis=0)
            return float(np.divide(square, variance, where=variance > 0, out=0 * square).sum())

    def estimate(self, n_columns: int) -> np.ndarray:
        """Mean square of each column's part in the difference of the pairs, by gradients."""
        squares = np.zeros(n_columns)
        rows, others = EncodedTable(self.rows), EncodedTable(self.others)
        both = zip(tiles(rows, self.model), tiles(others, self.model), strict=True)
        for (place, x), (_, start) in both:
            n_rows = place.stop - place.start
            for k in range(self.target.n_targets):
                parts = self._parts(x, start, k)[:n_rows]
                by_column = sum_by_column(parts, self.column_of_feature.numpy(), n_columns)
                squares += (by_column**2).sum(axis=0) / len(self.rows)
        return squares

    def _parts(self, x: torch.Tensor, start: torch.Tensor, output: int) -> np.ndarray:
        """Parts of the features in the difference of rows, in standard deviations, (B, D)."""
        paths = [TokenPath(network, x, start, output) for network in networks_of(self.model)]
        found = mean_of([path.contributions(t) for path in paths for t in _POINTS]).double().cpu()
        linear = self.target.linear_fits[output]
        if linear is not None:
            change = linear.contributions(x.cpu()) - linear.contributions(start.cpu())
            found = found * linear.share_of(self.target.scalers[output]) + change
        return np.asarray(found.numpy())

    def _predict(self, rows: torch.Tensor) -> np.ndarray:
        table = EncodedTable(rows)
        device = next(self.model.parameters()).device
        prediction = self.target.predict(predict_rows(self.model, table, device), table)
        return prediction if self.blended is None else self.blended(prediction, table)
