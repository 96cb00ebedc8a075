"""The direction of a text column's embeddings that says most about the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures

N_FOLDS = 3
# In units of the mean variance of a dimension.
_PENALTIES = torch.tensor([30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4], dtype=torch.float64)


@dataclass(frozen=True)
class TextDirection:
    """A ridge regression of what other columns leave of the target on the embeddings.

    Parameters
    ----------
    share : float
        Share that it explains in rows whose texts it did not see.
    weights : Tensor of float64, shape (d_text,)
    texts : Tensor of int64
        Places of the distinct texts that it was found by.
    held_out : Tensor of float64
        Their values, each by weights that were found without that text.
    """

    share: float
    weights: Tensor
    texts: Tensor
    held_out: Tensor

    @property
    def scale(self) -> float:
        """Spread of the values."""
        return float(self.held_out.std()) or 1.0


Directions = Sequence[Sequence[TextDirection]]
"""Of each text column, at most one for each target; empty where nothing is known."""


def find_direction(
    text: TextFeatures, center: Tensor, rows: NDArray[np.int64], residual: NDArray[np.float64]
) -> TextDirection:
    """Fit the ridge regression, cross-fitted by distinct text.

    Parameters
    ----------
    text : TextFeatures
        Embeddings.
    center : Tensor, shape (d_text,)
        Their mean.
    rows : ndarray of int64, shape (n,)
        The rows to fit.
    residual : ndarray of float64, shape (n,)
        What the other columns leave of the target in these rows.
    """
    distinct, place = torch.unique(text.index[torch.from_numpy(rows)], return_inverse=True)
    x = (text.values[distinct].double() - center)[place]
    y = torch.from_numpy(residual - residual.mean())
    folds = torch.from_numpy(np.random.default_rng(0).permutation(len(distinct)) % N_FOLDS)
    share, held_out, weights = _ridge(x, y, folds[place])
    of_texts = torch.empty(len(distinct), dtype=torch.float64)
    of_texts[place] = held_out  # rows with the same text have the same fold, and so the same value
    return TextDirection(share, weights, distinct, of_texts)


def _ridge(x: Tensor, y: Tensor, folds: Tensor) -> tuple[float, Tensor, Tensor]:
    """Share of y that x explains in other folds, its values there, and the weights by all rows.

    The penalty is that which explains most.
    """
    gram, cross = x.T @ x, x.T @ y
    penalties = _PENALTIES * gram.trace() / gram.shape[0] / len(x)
    held_out = torch.empty(len(x), len(penalties), dtype=torch.float64)
    for fold in range(N_FOLDS):
        inside = folds == fold
        own = x[inside]
        weights = _solve(gram - own.T @ own, cross - own.T @ y[inside], penalties)
        held_out[inside] = own @ weights
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
