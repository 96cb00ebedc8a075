"""The rows that a fit can use: checked, without those that teach nothing, and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidDataError, warn
from tabnsm.tables import Table
from tabnsm.tables.dataset import is_dataset
from tabnsm.target import Targets, read_targets
from tabnsm.training.named import read_target


@dataclass(frozen=True)
class TrainingData:
    """Encoded rows and targets of both parts of the split.

    Parameters
    ----------
    train, validation : EncodedTable
    train_target, validation_target : ndarray of float64, shape (n, t)
        In the targets' own units; NaN where missing, which only some targets of a row can be.
    train_weight, validation_weight : ndarray of float64, shape (n,), or None
    """

    train: EncodedTable
    train_target: np.ndarray
    train_weight: np.ndarray | None
    validation: EncodedTable
    validation_target: np.ndarray
    validation_weight: np.ndarray | None


def usable_rows(
    X: Any, y: Any, sample_weight: Any, name: str = "X", must_vary: bool = True
) -> tuple[Table, Targets, np.ndarray | None, np.ndarray]:
    """Table, targets (n, t), weights and mask without the rows that cannot teach anything."""
    table = Table.from_native(X)
    targets = read_targets(y, table.n_rows, must_vary=must_vary)
    missing = np.asarray(np.isnan(targets.values).all(axis=1))
    weight = check_weight(sample_weight, table.n_rows)
    kept = ~missing if weight is None else ~missing & (weight > 0)
    if missing.any():
        warn(
            f"{int(missing.sum())} of {len(missing)} rows of {name} have no target "
            "and were left out."
        )
    if kept.all():
        return table, targets, weight, kept
    rows = np.flatnonzero(kept)
    if not len(rows):
        raise InvalidDataError("sample_weight must be > 0 for some rows, got zero weight for all.")
    some = Targets(targets.values[rows], targets.names)
    return table.take(rows), some, None if weight is None else weight[rows], kept


def validation_rows(
    X_val: Any, y_val: Any, table: Table, targets: Targets
) -> tuple[Table, np.ndarray]:
    """The user's own validation rows, checked against the training rows before any work."""
    if is_dataset(X_val):
        X_val, y_val = read_target(Table.from_native(X_val), y_val, "y_val")
    given, given_targets, _, _ = usable_rows(X_val, y_val, None, "X_val", must_vary=False)
    given_targets = given_targets.in_order(targets.names, targets.values.shape[1])
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
    return given, given_targets.values


def check_trained(targets: Targets, train: np.ndarray) -> None:
    """Refuse targets that are missing in all rows to train on, a mask (n,)."""
    lacking = np.flatnonzero(np.isnan(targets.values[train]).all(axis=0))
    if len(lacking):
        k = int(lacking[0])
        name = k if targets.names is None else repr(targets.names[k])
        raise InvalidDataError(
            f"Each target must have values in the rows to train on, got none of target {name}: "
            "all rows with it validate or have no weight. Add rows with it, choose the rows to "
            "validate on yourself (X_val, y_val), or leave it out."
        )


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
