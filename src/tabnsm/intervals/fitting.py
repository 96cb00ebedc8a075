"""How a calibration is fitted: difficulty by training rows, scores by held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tabnsm.intervals.calibration import Calibration, TargetCalibration
from tabnsm.intervals.conformal import group_weights
from tabnsm.intervals.difficulty import Difficulty
from tabnsm.prediction import predict_rows
from tabnsm.training.budget import TimeBudget, now

if TYPE_CHECKING:
    from tabnsm.blend import Blend
    from tabnsm.columns import EncodedTable
    from tabnsm.nn.ensemble import Ensemble
    from tabnsm.nn.model import TabNSM
    from tabnsm.training.prepare import PreparedFit

MAX_ROWS, MIN_ROWS = 10_000, 500
"""Training rows that difficulty is learned from; fewer where a time limit is near."""
MAX_HELD_OUT = 100_000
"""Held-out rows that scores are taken of: coverage is then exact to one part in 100,000."""
SECONDS_PER_VALUE, MAX_SHARE = 1e-6, 0.15
"""Estimate of what follows training, per network; most of a time limit to set apart for it."""
LIMIT_SHARE = 0.005
"""Share of rows at the lowest or highest target from which on that is a limit, such as 0."""
MIN_LIMIT_ROWS = 3
_LARGEST = float(np.finfo(np.float64).max)


def seconds_after_training(prepared: PreparedFit, budget: TimeBudget) -> float:
    """Seconds of a time limit to set apart for calibration and importances."""
    data, n_networks = prepared.data, cast("int", prepared.options.training.n_ensemble)
    n_rows = min(data.train.n_rows, MAX_ROWS) + min(data.validation.n_rows, MAX_HELD_OUT)
    estimate = SECONDS_PER_VALUE * n_rows * data.train.n_features * n_networks
    return min(estimate, MAX_SHARE * budget.seconds_left())


def calibrate(
    prepared: PreparedFit,
    model: TabNSM | Ensemble,
    blend: Blend | None,
    device: torch.device,
    groups: NDArray[np.int64] | None = None,
    budget: TimeBudget | None = None,
) -> Calibration:
    """Difficulty and scores of every target.

    Difficulty is learned from training rows, whose errors are too small, but tell hard rows from
    easy ones. As it does not depend on the held-out rows, and neither do the weights of the
    networks but for the epoch that is kept, the scores are those of new rows.

    Parameters
    ----------
    prepared : PreparedFit
    model : TabNSM or Ensemble
        The trained networks.
    blend : Blend or None
    device : torch.device
    groups : ndarray of int, shape (n,), or None
        Of the held-out rows, if whole groups are held out.
    budget : TimeBudget or None
        Difficulty is learned from as many rows, and by as many trees, as half of the time allows
        that is left.
    """
    budget = budget or TimeBudget(None)
    started = now()
    held_out = _held_out_errors(prepared, model, blend, device, groups)
    per_row = (now() - started) / len(held_out.error)
    end = budget.seconds_left() / 2
    max_rows = MAX_ROWS
    if budget.is_limited and per_row > 0:
        max_rows = int(min(max(end / 2 / per_row, MIN_ROWS), MAX_ROWS))
    learned = _training_errors(prepared, model, device, max_rows)
    until = partial(_seconds_until, budget, end if budget.is_limited else 0.0)
    with threadpool_limits(1):  # threads that wait for each other burn what other work needs
        found = [
            _calibrate_target(prepared, learned, held_out, k, until)
            for k in range(len(learned.error.T))
        ]
    return Calibration(tuple(found))


@dataclass(frozen=True, eq=False)
class _Errors:
    """Errors of some rows, NaN where the target is missing, and what difficulty depends on."""

    table: EncodedTable
    standard: NDArray[np.float32]  # (n, t)
    error: NDArray[np.float64]  # (n, t)
    weight: NDArray[np.float64] | None

    def of_target(self, k: int) -> _Errors:
        """Of one target, (n', 1), without the rows that lack it."""
        rows = np.flatnonzero(~np.isnan(self.error[:, k]))
        if len(rows) == len(self.error):
            return replace(self, error=self.error[:, k : k + 1])
        weight = None if self.weight is None else self.weight[rows]
        table = self.table.take(torch.from_numpy(rows))
        return _Errors(table, self.standard[rows], self.error[rows, k : k + 1], weight)


def _training_errors(
    prepared: PreparedFit, model: TabNSM | Ensemble, device: torch.device, max_rows: int
) -> _Errors:
    """Of the networks alone: trees know their training rows too well."""
    data = prepared.data
    rows = _drawn(data.train.n_rows, max_rows, prepared.seed)
    table = data.train.take(torch.from_numpy(rows))
    standard = predict_rows(model, table, device)
    error = _difference(data.train_target[rows], prepared.target.unstandardize(standard))
    weight = None if data.train_weight is None else data.train_weight[rows]
    return _Errors(table, standard, error, weight)


def _held_out_errors(
    prepared: PreparedFit,
    model: TabNSM | Ensemble,
    blend: Blend | None,
    device: torch.device,
    groups: NDArray[np.int64] | None,
) -> _Errors:
    """Of the whole model, with weights in which every group counts the same."""
    data, target = prepared.data, prepared.target
    table, weight, truth = data.validation, data.validation_weight, data.validation_target
    if table.n_rows > MAX_HELD_OUT:
        rows = _drawn(table.n_rows, MAX_HELD_OUT, prepared.seed)
        table, truth = table.take(torch.from_numpy(rows)), truth[rows]
        weight = None if weight is None else weight[rows]
        groups = None if groups is None else groups[rows]
    standard = predict_rows(model, table, device)
    residual = target.unstandardize(standard)
    if blend is not None:
        networks = target.predict(standard, table)
        blended = blend.predict(networks[:, 0].copy(), table, target, model)
        residual = residual + (blended[:, None] - networks)
    if groups is not None:
        weight = group_weights(groups, weight)
    return _Errors(table, standard, _difference(truth, residual), weight)


def _drawn(n_rows: int, max_rows: int, seed: int) -> NDArray[np.int64]:
    """Rows in order, at random if there are more than `max_rows`."""
    if n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, max_rows, replace=False))


def _calibrate_target(
    prepared: PreparedFit,
    learned: _Errors,
    held_out: _Errors,
    k: int,
    seconds_left: Callable[[], float],
) -> TargetCalibration | None:
    learned, held_out = learned.of_target(k), held_out.of_target(k)
    if not len(learned.error) or not len(held_out.error):
        return None
    difficulty = Difficulty.fit(
        learned.table,
        learned.standard,
        learned.error[:, 0],
        learned.weight,
        prepared.encoder.category_sizes,
        prepared.seed,
        seconds_left,
    )
    with np.errstate(over="ignore"):
        scores = held_out.error[:, 0] / difficulty.predict(held_out.table, held_out.standard)
    scores = np.clip(scores, -_LARGEST, _LARGEST)
    order = np.argsort(scores, kind="stable")
    weight = None if held_out.weight is None else held_out.weight[order]
    return TargetCalibration(difficulty, scores[order], weight, _limits(prepared, k))


def _seconds_until(budget: TimeBudget, end: float) -> float:
    return budget.seconds_left() - end


def _limits(prepared: PreparedFit, k: int) -> tuple[float, float]:
    """The lowest and the highest value of a target, where many rows have it."""
    if prepared.target.linear_fits[k] is not None:
        return -np.inf, np.inf
    data = prepared.data
    parts = [data.train_target[:, k], data.validation_target[:, k]]  # too large to be joined
    low = float(np.fmin.reduce([np.fmin.reduce(part) for part in parts]))
    high = float(np.fmax.reduce([np.fmax.reduce(part) for part in parts]))
    n_present = sum(np.count_nonzero(~np.isnan(part)) for part in parts)
    needed = max(MIN_LIMIT_ROWS, LIMIT_SHARE * n_present)
    n_low, n_high = (sum(np.count_nonzero(part == end) for part in parts) for end in (low, high))
    return low if n_low >= needed else -np.inf, high if n_high >= needed else np.inf


def _difference(truth: NDArray[np.float64], prediction: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.clip(truth - prediction, -_LARGEST, _LARGEST)
