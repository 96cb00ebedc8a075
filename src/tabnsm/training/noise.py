"""How much of a target can be explained at all, by a quick look with boosted trees."""

from __future__ import annotations

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from tabnsm.training.rows import TrainingData

MAX_ROWS, MIN_ROWS, MIN_VALIDATION_ROWS = 10_000, 500, 100


def explained_share(data: TrainingData) -> float | None:
    """Share of the validation targets' variance that boosted trees explain.

    It chooses the loss: where most of a target is noise, its mean and its median given the columns
    differ by more than networks do, and the squared error asks for the mean.

    Parameters
    ----------
    data : TrainingData
        Of one target, without missing entries.

    Returns
    -------
    float or None
        None where there are too few rows to tell, or several targets.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    n_train, n_validation = len(data.train_target), len(data.validation_target)
    is_small = n_train < MIN_ROWS or n_validation < MIN_VALIDATION_ROWS
    if is_small or data.train_target.shape[1] != 1:
        return None
    rows = np.arange(n_train)
    if n_train > MAX_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(n_train, MAX_ROWS, replace=False))
    trees = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0)
    # Over a power of two, so that squares neither overflow nor vanish.
    unit = np.frexp(np.abs(data.train_target).max())[1]
    target, truth = (np.ldexp(y[:, 0], -unit) for y in (data.train_target, data.validation_target))
    every = torch.arange(n_validation)
    with threadpool_limits(1):  # threads that wait for each other burn what other work needs
        trees.fit(data.train.gather(torch.from_numpy(rows)).numpy(), target[rows])
        predicted = trees.predict(data.validation.gather(every).numpy())
    total = np.square(truth - truth.mean()).sum()
    return float(1 - np.square(truth - predicted).sum() / total) if total else None
