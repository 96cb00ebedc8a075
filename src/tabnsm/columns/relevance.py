"""Which columns of text or codes say something about the target that the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.target_means import scaled
from tabnsm.columns.text_direction import TextDirection, find_direction
from tabnsm.text.projection import TextProjection

if TYPE_CHECKING:
    from sklearn.model_selection import KFold

Floats = NDArray[np.float64]

# NOTE[DIFF]: the paper uses all text.
MAX_ROWS, MIN_ROWS = 10_000, 200
MIN_SHARE = 0.005
"""Share of the residual's variance that text must explain in rows that it did not see."""
MIN_SHARE_OF_DIRECTION = 0.05
"""The same of one direction of the whole embedding, in rows whose texts it did not see."""
N_FOLDS = 3
_ALPHAS = (10.0, 100.0, 1000.0)
_MAX_CODES = 255


def text_relevance(
    dense: NDArray[np.float32],
    category_sizes: Sequence[int],
    texts: Sequence[TextFeatures],
    projections: Sequence[TextProjection],
    target: Floats,
    rows: NDArray[np.int64] | None,
) -> tuple[list[float], list[list[TextDirection]]] | None:
    """What each text column says beyond the other columns, cross-fitted.

    Boosted trees on the other columns leave residuals; ridge regressions on the features of a
    text column, and on its whole embedding, explain them or not.

    Parameters
    ----------
    dense : ndarray of float32, shape (n, d)
        Encoded features but text.
    category_sizes : sequence of int
        Number of codes of each of them, 0 for a number.
    texts : sequence of TextFeatures
        Embeddings.
    projections : sequence of TextProjection
        From embeddings to features.
    target : ndarray of float64, shape (n, t)
    rows : ndarray of int64 or None
        Fit rows; None for all.

    Returns
    -------
    tuple of list of float and list of list of TextDirection, or None
        For each text column the largest share of a residual that its features explain, and the
        directions of its embedding that are worth a feature, at most one for each target. None
        where there are too few rows to tell.
    """
    shares = [0.0] * len(texts)
    directions: list[list[TextDirection]] = [[] for _ in texts]
    for known, y in samples(target, rows, len(dense)):
        if len(known) < MIN_ROWS:
            return None
        residual = residual_of(dense[known], category_sizes, y)
        for k, (text, project) in enumerate(zip(texts, projections, strict=True)):
            features = project(text.values[text.index[known]]).double().numpy()
            shares[k] = max(shares[k], _explained(features, residual))
            found = find_direction(text, project.center, known, residual)
            if found.share >= MIN_SHARE_OF_DIRECTION:
                directions[k].append(found)
    return shares, directions


def code_shares(
    dense: NDArray[np.float32],
    category_sizes: Sequence[int],
    codes: Sequence[Sequence[int]],
    target: Floats,
    rows: NDArray[np.int64] | None,
) -> list[float] | None:
    """The same of columns of codes, each given by its features among the dense ones."""
    places = {feature for column in codes for feature in column}
    others = [k for k in range(dense.shape[1]) if k not in places]
    sizes = [category_sizes[k] for k in others]
    shares = [0.0] * len(codes)
    for known, y in samples(target, rows, len(dense)):
        if len(known) < MIN_ROWS:
            return None
        residual = residual_of(dense[known][:, others], sizes, y)
        total = np.square(residual - residual.mean()).sum() or 1.0
        for k, column in enumerate(codes):
            own = [category_sizes[feature] for feature in column]
            left = residual_of(dense[known][:, list(column)], own, residual)
            shares[k] = max(shares[k], float(1 - np.square(left).sum() / total))
    return shares


def samples(
    target: Floats, rows: NDArray[np.int64] | None, n_rows: int
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """Of each target some of the fit rows that have it, and its values without the extremes."""
    rows = np.arange(n_rows) if rows is None else rows
    for y in target.T:
        known = rows[np.isfinite(y[rows])]
        if len(known) > MAX_ROWS:
            known = np.random.default_rng(0).choice(known, MAX_ROWS, replace=False)
        some = scaled(y[known])
        yield known, np.clip(some, *np.quantile(some, (0.01, 0.99))) if len(some) else some


def residual_of(dense: NDArray[np.float32], category_sizes: Sequence[int], y: Floats) -> Floats:
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
        predicted = cross_val_predict(trees, dense, y, cv=_folds())
    return np.asarray(y - predicted)


def _folds() -> KFold:
    """Folds that are not in the order of the rows, or what is left of a table by time is drift."""
    from sklearn.model_selection import KFold

    return KFold(N_FOLDS, shuffle=True, random_state=0)


def _explained(features: Floats, residual: Floats) -> float:
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import cross_val_predict

    folds = _folds()
    total = np.square(residual - residual.mean()).sum() or 1.0
    left = min(
        np.square(residual - cross_val_predict(Ridge(alpha), features, residual, cv=folds)).sum()
        for alpha in _ALPHAS
    )
    return float(1 - left / total)
