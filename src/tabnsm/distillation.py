"""Distillation: one small network that learns what a fitted model predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator

from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import join_tables
from tabnsm.errors import InvalidDataError, InvalidOptionError, warn
from tabnsm.intervals import seconds_after_training
from tabnsm.metrics import weighted_mae, weighted_rmse
from tabnsm.options import Options, check_run_options, resolve_options
from tabnsm.prediction import resolve_device
from tabnsm.sklearn_base import check_random_state
from tabnsm.tables import Table
from tabnsm.target import read_targets
from tabnsm.training.budget import TimeBudget
from tabnsm.training.ensemble import EnsembleTraining
from tabnsm.training.prepare import PreparedFit
from tabnsm.training.progress import TrainingProgress
from tabnsm.training.rows import TrainingData

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

Model = TypeVar("Model", bound="FittedRegressor")
STUDENT: dict[str, Any] = {
    "preset": "default",
    "n_ensemble": 1,
    "d_token": 16,
    "n_heads": 2,
    "head_width": 64,
    "patience": 16,
    "scheduler_patience": 3,
    "max_epochs": None,
    "time_limit": None,
    "checkpoint_dir": None,
    # The predictions of a model are no noisy targets.
    "loss": "mse",
}
"""Options of a student that differ from its teacher's, unless they are given."""
MIN_ROWS = 10
VALIDATION_SHARE = 0.1
MIN_TAUGHT, MAX_MIXES = 20_000, 40
"""Rows to learn from that mixing aims at, and mixed rows per row up to which it does."""
MAX_VALUES = 2**26
"""Most encoded values of the mixed rows."""


def distill_model(model: Model, X: Any, y: Any, options: dict[str, Any]) -> Model:
    """Train a student; arguments as in `TabNSMRegressor.distill`."""
    student = type(model)(**{**model.get_params(deep=False), **STUDENT, **options})
    resolved = resolve_options(student.get_params(deep=False))
    budget = TimeBudget(resolved.training.time_limit)
    check_run_options(student.verbose, student.n_jobs, False, None)
    if student.preset == "best" or student.checkpoint_dir is not None:
        raise InvalidOptionError(
            'A student is one set of networks that learns in one go: preset="best" and '
            "checkpoint_dir cannot be given to distill. Leave them out."
        )
    device = resolve_device(student.device)
    table = Table.from_native(X)
    if table.n_rows < MIN_ROWS:
        raise InvalidDataError(
            f"distill needs at least {MIN_ROWS} rows to learn predictions for, got "
            f"{table.n_rows}. Pass the rows that the model was fitted on, or others like them."
        )
    truth = None if y is None else _known_targets(model, y, table.n_rows)
    seed = int(check_random_state(student.random_state).randint(2**31))
    generator = torch.Generator().manual_seed(seed)
    encoded = model.encoder_.transform(table)
    order = torch.randperm(encoded.n_rows, generator=generator)
    n_held_out = max(int(VALIDATION_SHARE * encoded.n_rows), 2)
    held_out, taught = encoded.take(order[:n_held_out]), encoded.take(order[n_held_out:])
    mixed = mixed_rows(taught, model.encoder_.feature_columns, generator)
    both = join_tables(taught, mixed)
    data = TrainingData(both, lesson(model, both), None, held_out, lesson(model, held_out), None)
    prepared = PreparedFit(
        model.encoder_,
        data,
        model.target_,
        _resolved(resolved, model, data),
        seed,
        generator.get_state(),
    )
    training = EnsembleTraining(prepared, device, budget, student.n_jobs)
    with (
        TrainingProgress.of(prepared.options.training, student.verbose) as progress,
        budget.reserved(seconds_after_training(prepared, budget)),
    ):
        training.train(None, False, progress)
    student._keep(table, prepared, training)
    # Errors on rows that this model was fitted on say nothing of those on new ones.
    student.calibration_ = None
    if truth is not None:
        _score(student, held_out, truth[order[:n_held_out].numpy()])
    for message in training.messages:
        warn(message)
    return student


def lesson(model: FittedRegressor, table: EncodedTable) -> NDArray[np.float64]:
    """What networks should learn of these rows: predictions less the linear fits, (n, t)."""
    prediction = model.predict_encoded(table)
    for column, linear in zip(prediction.T, model.target_.linear_fits, strict=True):
        if linear is not None:
            column -= linear.predict(table)
    return prediction


def mixed_rows(
    table: EncodedTable, feature_columns: list[int], generator: Generator
) -> EncodedTable:
    """New rows, each with the values of one row in some columns and of another in the others.

    All features of a column go together. How many columns are exchanged differs from row to row:
    from none to half of them.

    Parameters
    ----------
    table : EncodedTable
    feature_columns : list of int
        Input column of each feature.
    generator : torch.Generator

    Returns
    -------
    EncodedTable
        So many that all rows together are 20,000, but at most 40 for each, and at least one.
    """
    n_values = table.dense.shape[1] + len(table.texts)
    n_rows = min(max(MIN_TAUGHT - table.n_rows, table.n_rows), MAX_MIXES * table.n_rows)
    n_rows = max(min(n_rows, MAX_VALUES // max(n_values, 1)), 1)
    first = torch.randint(table.n_rows, (n_rows,), generator=generator)
    second = torch.randint(table.n_rows, (n_rows,), generator=generator)
    share = 0.5 * torch.rand(n_rows, 1, generator=generator)
    n_dense = table.dense.shape[1]
    columns, place = np.unique(feature_columns[:n_dense], return_inverse=True)
    drawn = torch.rand(n_rows, len(columns) + len(table.texts), generator=generator) < share
    dense = torch.where(drawn[:, torch.from_numpy(place)], table.dense[second], table.dense[first])
    texts = tuple(
        replace(text, index=torch.where(drawn[:, k], text.index[second], text.index[first]))
        for k, text in enumerate(table.texts, start=len(columns))
    )
    return EncodedTable(dense, texts)


def _resolved(options: Options, model: FittedRegressor, data: TrainingData) -> Options:
    """Options of the student's training; those of encoder and target are the teacher's."""
    own = options.for_data(data.train_target, model.encoder_.n_features)
    return replace(own, encoder=model.options_.encoder, target=model.options_.target)


def _known_targets(model: FittedRegressor, y: Any, n_rows: int) -> NDArray[np.float64]:
    targets = read_targets(y, n_rows, must_vary=False)
    return targets.in_order(model.target_.names, model.target_.n_targets, "y").values


def _score(student: FittedRegressor, held_out: EncodedTable, truth: NDArray[np.float64]) -> None:
    """Set the scores of a student whose held-out rows have known targets."""
    prediction = student.predict_encoded(held_out)
    scores = {}
    for name, metric in (("rmse", weighted_rmse), ("mae", weighted_mae)):
        if truth.shape[1] > 1:
            scores[name] = student.target_.mean_score(metric, truth, prediction, None)
        else:
            known = ~np.isnan(truth[:, 0])
            scores[name] = metric(truth[known, 0], prediction[known, 0], None)
    student.validation_rmse_ = scores["rmse"]
    student.best_score_ = scores[student.options_.training.eval_metric]
