"""Whether networks learn a target, or the residual of a linear fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.columns import EncodedTable
from tabnsm.columns.large import sample_rows
from tabnsm.metrics import weighted_rmse
from tabnsm.target.linear_fit import LinearFit
from tabnsm.target.scaler import TargetScaler

MAX_RESIDUAL = 0.1
"""RMSE of a linear fit on validation rows, over that of their mean, up to which it is used; 0.1 is
an R2 of 0.99."""
MAX_GAP = 1.5
"""That RMSE over the one on training rows; beyond, the fit overfits the training rows, as it does
those of a category with few rows each, and their residuals say nothing."""
MIN_ROWS = 20
"""Validation rows below which a small residual may be luck."""
LARGE_CELLS, SAMPLE_CELLS = 2**27, 2**25
"""Encoded values of the training rows above which the fit is made on a sample, and those of it."""


class TargetRows(NamedTuple):
    """Encoded rows, one target of theirs, (n,), and their weights, (n,) or None."""

    table: EncodedTable
    target: NDArray[np.float64]
    weight: NDArray[np.float64] | None


class LinearResidual(NamedTuple):
    """A linear fit, and what it leaves of the training and the validation targets."""

    fit: LinearFit
    train: NDArray[np.float64]
    validation: NDArray[np.float64]


def _some_rows(rows: TargetRows) -> TargetRows:
    """Of a large table a sample, because the fit goes over its rows many times."""
    n_rows, n_features = len(rows.target), rows.table.n_features
    if n_rows * n_features <= LARGE_CELLS:
        return rows
    chosen = sample_rows(n_rows, max(SAMPLE_CELLS // n_features, MIN_ROWS))
    weight = None if rows.weight is None else rows.weight[chosen]
    return TargetRows(rows.table.take(torch.from_numpy(chosen)), rows.target[chosen], weight)


def linear_residual(
    train: TargetRows,
    validation: TargetRows,
    category_sizes: Sequence[int],
    ignored: Sequence[int] = (),
) -> LinearResidual | None:
    """A linear fit and its residuals, where networks should learn these.

    The fit must all but explain the validation rows, and the training rows not much better, and
    there must be enough rows to tell.

    Parameters
    ----------
    train, validation : TargetRows
    category_sizes : sequence of int
        Number of codes of each feature, 0 for a number.
    ignored : sequence of int
        Features without a part in the fit: the means of targets, which are less exact in training
        rows than in others.

    Returns
    -------
    LinearResidual or None
    """
    if len(validation.target) < MIN_ROWS:
        return None
    fit = LinearFit.fit(*_some_rows(train), category_sizes, ignored)
    if fit is None:
        return None
    known, unknown = fit.predict(train.table), fit.predict(validation.table)
    scaler = TargetScaler.fit(validation.target, validation.weight)
    mean = scaler.inverse(np.zeros(len(validation.target)))
    max_rmse = min(
        MAX_RESIDUAL * weighted_rmse(validation.target, mean, validation.weight),
        MAX_GAP * weighted_rmse(train.target, known, train.weight),
    )
    if not weighted_rmse(validation.target, unknown, validation.weight) <= max_rmse:
        return None
    return LinearResidual(fit, train.target - known, validation.target - unknown)
