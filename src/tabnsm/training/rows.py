"""The rows that a fit can use: checked, without those that teach nothing, and split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tabnsm.errors import InvalidDataError, warn
from tabnsm.preprocessing import LinearFit, TargetScaler, check_target
from tabnsm.tables import Table
from tabnsm.training.loop import TrainingData
from tabnsm.training.scores import weighted_rmse

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable

MAX_RESIDUAL = 0.1
"""RMSE of a straight fit on validation rows, over that of their mean, which makes it worth taking
off; 0.1 is an R2 of 0.99."""
MAX_GAP = 1.5
"""That RMSE over the one on training rows; beyond, training rows were learned by heart, as those of
a category with few rows each are, and what is left of them says nothing."""
MIN_ROWS = 20
"""Validation rows below which a small rest may be luck."""


def usable_rows(
    X: Any, y: Any, sample_weight: Any, name: str = "X", must_vary: bool = True
) -> tuple[Table, np.ndarray, np.ndarray | None, np.ndarray]:
    """Table, target and weights without the rows that cannot teach anything."""
    table = Table.from_native(X)
    target, missing = check_target(y, table.n_rows, must_vary=must_vary)
    weight = check_weight(sample_weight, table.n_rows)
    kept = ~missing if weight is None else ~missing & (weight > 0)
    if missing.any():
        warn(
            f"{int(missing.sum())} of {len(missing)} rows of {name} have no target "
            "and were left out."
        )
    if kept.all():
        return table, target, weight, kept
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise InvalidDataError("sample_weight must be > 0 for some rows, got zero weight for all.")
    return table.take(rows), target[rows], None if weight is None else weight[rows], kept


def validation_rows(X_val: Any, y_val: Any, table: Table) -> tuple[Table, np.ndarray]:
    """The user's own validation rows, checked against the training table before any work."""
    given, target, _, _ = usable_rows(X_val, y_val, None, "X_val", must_vary=False)
    if table.has_names and given.has_names:
        absent = [name for name in table.names if name not in set(given.names)]
        if absent:
            raise InvalidDataError(
                f"X_val must have the columns of X, got none named {absent[0]!r} "
                f"({len(absent)} missing). Pass the same columns in both."
            )
    elif given.n_columns != table.n_columns:
        raise InvalidDataError(
            f"X_val must have as many columns as X ({table.n_columns}), got {given.n_columns}."
        )
    return given, target


def check_weight(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights of the rows as float64, or an error that says what is wrong with them."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"sample_weight must be numbers ({error}).") from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise InvalidDataError(
            f"sample_weight must be 1D with one value per row ({n_rows},), got {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise InvalidDataError(f"sample_weight must be finite and >= 0, got {bad}.")
    return weight


def split_rows(
    encoded: EncodedTable, target: np.ndarray, weight: np.ndarray | None, held_out: np.ndarray
) -> TrainingData:
    """Rows to train on, and those that are held out."""
    train, validation = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    return TrainingData(
        encoded.take(torch.from_numpy(train)),
        target[train],
        None if weight is None else weight[train],
        encoded.take(torch.from_numpy(validation)),
        target[validation],
        None if weight is None else weight[validation],
    )


def subtract_linear_fit(
    data: TrainingData, category_sizes: Sequence[int]
) -> tuple[TrainingData, LinearFit | None]:
    """What a straight fit leaves of the targets, and that fit; or the rows as they are.

    It is taken off where it all but explains the validation rows, and the training rows not much
    better, and where there are enough rows to tell.
    """
    target, weight = data.validation_target, data.validation_weight
    if len(target) < MIN_ROWS:
        return data, None
    linear = LinearFit.fit(data.train, data.train_target, data.train_weight, category_sizes)
    if linear is None:
        return data, None
    straight, known = linear.predict(data.validation), linear.predict(data.train)
    mean = TargetScaler.fit(target, weight).inverse(np.zeros(len(target)))
    largest = min(
        MAX_RESIDUAL * weighted_rmse(target, mean, weight),
        MAX_GAP * weighted_rmse(data.train_target, known, data.train_weight),
    )
    if not weighted_rmse(target, straight, weight) <= largest:
        return data, None
    rest = replace(
        data, train_target=data.train_target - known, validation_target=target - straight
    )
    return rest, linear
