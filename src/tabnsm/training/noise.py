"""How much of a target can be explained at all, by a quick look with boosted trees."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from tabnsm.columns.large import sample_rows
from tabnsm.training.rows import TrainingData

MAX_ROWS, MIN_ROWS, MIN_VALIDATION_ROWS, MAX_TARGETS = 10_000, 500, 100, 4
MAX_VALIDATION_ROWS = 200_000


def explained_share(data: TrainingData) -> float | None:
    """Share of the validation targets' variance that boosted trees explain, mean of the targets.

    It chooses the loss: where most of a target is noise, its mean and its median given the columns
    differ by more than networks do, and the squared error asks for the mean.

    Parameters
    ----------
    data : TrainingData

    Returns
    -------
    float or None
        None where there are too few rows to tell. Of many targets, the first ones are looked at.
    """
    n_targets = min(data.train_target.shape[1], MAX_TARGETS)
    shares = [_share_of(data, place) for place in range(n_targets)]
    known = [share for share in shares if share is not None]
    return float(np.mean(known)) if known else None


def _share_of(data: TrainingData, place: int) -> float | None:
    """The same of one target, on the rows that have it."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    target, truth = (y[:, place] for y in (data.train_target, data.validation_target))
    rows, others = (np.flatnonzero(~np.isnan(y)) for y in (target, truth))
    if len(rows) < MIN_ROWS or len(others) < MIN_VALIDATION_ROWS:
        return None
    if len(rows) > MAX_ROWS:
        rows = rows[np.sort(np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False))]
    trees = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0)
    # Over a power of two, so that squares neither overflow nor vanish.
    unit = np.frexp(np.nanmax(np.abs(target)))[1]
    if len(others) > MAX_VALIDATION_ROWS:
        others = others[sample_rows(len(others), MAX_VALIDATION_ROWS)]
    target, truth = np.ldexp(target[rows], -unit), np.ldexp(truth[others], -unit)
    with threadpool_limits(1):  # threads that wait for each other burn what other work needs
        trees.fit(data.train.gather(torch.from_numpy(rows)).numpy(), target)
        predicted = trees.predict(data.validation.gather(torch.from_numpy(others)).numpy())
    total = np.square(truth - truth.mean()).sum()
    return float(1 - np.square(truth - predicted).sum() / total) if total else None
