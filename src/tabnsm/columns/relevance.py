"""Which columns of text or codes say something about the target that the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.target_means import scaled

Floats = NDArray[np.float64]

# NOTE[DIFF]: the paper uses all text.
MAX_ROWS, MIN_ROWS = 10_000, 200
MIN_SHARE = 0.005
"""Share of the residual's variance that text must explain in rows that it did not see."""
N_FOLDS = 3
# In units of the mean variance of a dimension.
_PENALTIES = torch.tensor([30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4], dtype=torch.float64)
_MAX_CODES = 255


@dataclass(frozen=True)
class TextScore:
    """What a text column says about one target: the direction of its embeddings that tells most.

    Parameters
    ----------
    share : float
        Share of what the other columns leave open that it explains in rows that it did not see.
    share_of_new : float
        The same, in rows whose texts it did not see.
    direction : Tensor of float64, shape (d_text,)
    texts : Tensor of int64
        Places of the distinct texts that it was found by.
    held_out : Tensor of float64
        Their values, each by a direction that was found without that text.
    """

    share: float
    share_of_new: float
    direction: Tensor
    texts: Tensor
    held_out: Tensor

    @property
    def scale(self) -> float:
        """Spread of the values."""
        return float(self.held_out.std()) or 1.0


Scores = Sequence[Sequence[TextScore]]
"""Of each text column and target; none at all where nothing is known."""


def text_scores(
    dense: NDArray[np.float32],
    category_sizes: Sequence[int],
    texts: Sequence[TextFeatures],
    centers: Sequence[Tensor],
    target: Floats,
    rows: NDArray[np.int64] | None,
) -> list[list[TextScore]] | None:
    """What each text column says about each target beyond the other columns, cross-fitted.

    Boosted trees on the other columns leave residuals, a ridge regression on the embeddings of a
    text column explains them or not.

    Parameters
    ----------
    dense : ndarray of float32, shape (n, d)
        Encoded features but text.
    category_sizes : sequence of int
        Number of codes of each of them, 0 for a number.
    texts : sequence of TextFeatures
        Embeddings.
    centers : sequence of Tensor
        Mean embedding of each.
    target : ndarray of float64, shape (n, t)
    rows : ndarray of int64 or None
        Fit rows; None for all.

    Returns
    -------
    list of list of TextScore, or None
        A list for each text column; None where there are too few rows to tell.
    """
    scores: list[list[TextScore]] = [[] for _ in texts]
    for known, y in _samples(target, rows, len(dense)):
        if len(known) < MIN_ROWS:
            return None
        residual = torch.from_numpy(_residual(dense[known], category_sizes, y))
        for own, text, center in zip(scores, texts, centers, strict=True):
            own.append(_score(text, center, torch.from_numpy(known), residual))
    return scores


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
    for known, y in _samples(target, rows, len(dense)):
        if len(known) < MIN_ROWS:
            return None
        residual = _residual(dense[known][:, others], sizes, y)
        total = np.square(residual - residual.mean()).sum() or 1.0
        for k, column in enumerate(codes):
            own = [category_sizes[feature] for feature in column]
            left = _residual(dense[known][:, list(column)], own, residual)
            shares[k] = max(shares[k], float(1 - np.square(left).sum() / total))
    return shares


def _samples(
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


def _residual(dense: NDArray[np.float32], category_sizes: Sequence[int], y: Floats) -> Floats:
    """What boosted trees on the other columns leave of the target, in rows they did not see."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict
    from threadpoolctl import threadpool_limits

    if not dense.shape[1]:
        return np.asarray(y - y.mean())
    sizes = category_sizes[: dense.shape[1]]
    few = [k for k, size in enumerate(sizes) if 0 < size <= _MAX_CODES]
    trees = HistGradientBoostingRegressor(
        max_iter=60, early_stopping=False, categorical_features=few or None, random_state=0
    )
    with threadpool_limits(1):  # threads that wait for each other burn what other work needs
        # Rows are often in order of time or place: folds must not be, or all that is left is drift.
        folds = KFold(N_FOLDS, shuffle=True, random_state=0)
        predicted = cross_val_predict(trees, dense, y, cv=folds)
    return np.asarray(y - predicted)


def _score(text: TextFeatures, center: Tensor, known: Tensor, residual: Tensor) -> TextScore:
    """What one column says about the residual in some rows."""
    distinct, place = torch.unique(text.index[known], return_inverse=True)
    x = (text.values[distinct].double() - center)[place]
    y = residual - residual.mean()
    share, _, _ = _ridge(x, y, _folds(len(y)))
    share_of_new, held_out, direction = _ridge(x, y, _folds(len(distinct))[place])
    of_texts = torch.empty(len(distinct), dtype=torch.float64)
    of_texts[place] = held_out  # rows with the same text have the same fold, and so the same value
    return TextScore(share, share_of_new, direction, distinct, of_texts)


def _folds(n: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).permutation(n) % N_FOLDS)


def _ridge(x: Tensor, y: Tensor, folds: Tensor) -> tuple[float, Tensor, Tensor]:
    """Share of y that x explains in other folds, its values there, and the direction by all rows.

    The penalty is that which explains most.
    """
    gram, cross = x.T @ x, x.T @ y
    penalties = _PENALTIES * gram.trace() / gram.shape[0] / len(x)
    held_out = torch.empty(len(x), len(penalties), dtype=torch.float64)
    for fold in range(N_FOLDS):
        inside = folds == fold
        own = x[inside]
        directions = _solve(gram - own.T @ own, cross - own.T @ y[inside], penalties)
        held_out[inside] = own @ directions
    left = (y[:, None] - held_out).square().sum(0)
    best = int(left.argmin())
    share = 1 - float(left[best] / (y.square().sum() or 1.0))
    return share, held_out[:, best], _solve(gram, cross, penalties[best : best + 1])[:, 0]


def _solve(gram: Tensor, cross: Tensor, penalties: Tensor) -> Tensor:
    """Solutions of the normal equations, one column per penalty."""
    values, vectors = torch.linalg.eigh(gram)
    loads: Tensor = (vectors.T @ cross)[:, None] / (values.clamp_min(0)[:, None] + penalties)
    solutions: Tensor = vectors @ loads
    return solutions
