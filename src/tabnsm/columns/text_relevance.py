"""Which text columns say something about the target that the other columns do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.target_means import scaled

Floats = NDArray[np.float64]

# NOTE[DIFF]: the paper uses all text.
MAX_ROWS, MIN_ROWS = 10_000, 200
MIN_SHARE = 0.005
"""Share of the residual's variance that text must explain in rows that it did not see."""
N_FOLDS = 3
_ALPHAS = (10.0, 100.0, 1000.0)
_MAX_CODES = 255


def text_shares(
    dense: NDArray[np.float32],
    category_sizes: Sequence[int],
    texts: Sequence[TextFeatures],
    target: Floats,
    rows: NDArray[np.int64] | None,
) -> list[float] | None:
    """Share of what the other columns leave open that each text column explains, cross-fitted.

    Boosted trees on the other columns leave residuals, a ridge regression on the features of a
    text column explains them or not.

    Parameters
    ----------
    dense : ndarray of float32, shape (n, d)
        Encoded features but text.
    category_sizes : sequence of int
        Number of codes of each of them, 0 for a number.
    texts : sequence of TextFeatures
    target : ndarray of float64, shape (n, t)
    rows : ndarray of int64 or None
        Fit rows; None for all.

    Returns
    -------
    list of float or None
        The largest share over the targets; None where there are too few rows to tell.
    """
    rows = np.arange(len(dense)) if rows is None else rows
    shares = [0.0] * len(texts)
    for y in target.T:
        known = rows[np.isfinite(y[rows])]
        if len(known) < MIN_ROWS:
            return None
        if len(known) > MAX_ROWS:
            known = np.random.default_rng(0).choice(known, MAX_ROWS, replace=False)
        some = scaled(y[known])
        some = np.clip(some, *np.quantile(some, (0.01, 0.99)))
        residual = _residual(dense[known], category_sizes, some)
        for k, text in enumerate(texts):
            features = text.values[text.index[known]].double().numpy()
            shares[k] = max(shares[k], _explained(features, residual))
    return shares


def _residual(dense: NDArray[np.float32], category_sizes: Sequence[int], y: Floats) -> Floats:
    """What boosted trees on the other columns leave of the target, in rows they did not see."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import cross_val_predict
    from threadpoolctl import threadpool_limits

    if not dense.shape[1]:
        return np.asarray(y - y.mean())
    sizes = category_sizes[: dense.shape[1]]
    few = [k for k, size in enumerate(sizes) if 0 < size <= _MAX_CODES]
    trees = HistGradientBoostingRegressor(
        max_iter=60, early_stopping=False, categorical_features=few or None, random_state=0
    )
    with threadpool_limits(1):  # threads that wait for each other burn what other work needs
        predicted = cross_val_predict(trees, dense, y, cv=N_FOLDS)
    return np.asarray(y - predicted)


def _explained(features: Floats, residual: Floats) -> float:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_val_predict

    total = np.square(residual - residual.mean()).sum() or 1.0
    left = min(
        np.square(residual - cross_val_predict(Ridge(alpha), features, residual, cv=N_FOLDS)).sum()
        for alpha in _ALPHAS
    )
    return float(1 - left / total)
