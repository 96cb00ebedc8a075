"""Difficulty: how far the prediction of a row is off, as a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.forest import Forest
from tabnsm.blend.growing import TreeRows, grow_extra
from tabnsm.columns import EncodedTable

EVEN_SHARE = 0.05
"""What every row's difficulty has beside the forest's part, in mean errors."""
N_TREES, N_LEAVES, MIN_LEAF = 32, 200, 10
MAX_CANDIDATES = 64
"""Features that a split is chosen from, at most; at least half of them in narrow tables."""
_CHUNK_VALUES = 2**23  # encoded values of the rows that are looked at together


@dataclass(frozen=True, eq=False)
class Difficulty:
    """The expected absolute error of a row, from its features and its prediction.

    Parameters
    ----------
    features : TreeFeatures
        What the trees split by, beside the predictions.
    forest : Forest
        Predicts the absolute error in mean errors.
    unit : float
        The mean error, in the units of the target.
    """

    features: TreeFeatures
    forest: Forest
    unit: float

    @classmethod
    def fit(
        cls,
        table: EncodedTable,
        standard: NDArray[np.float32],
        error: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        category_sizes: Sequence[int],
        seed: int,
        seconds_left: Callable[[], float] = lambda: np.inf,
    ) -> Difficulty:
        """Learn from errors, of rows that calibrate nothing.

        Parameters
        ----------
        table : EncodedTable
        standard : ndarray of float32, shape (n, t)
            What the networks predict for these rows.
        error : ndarray of float64, shape (n,)
            True value minus prediction.
        weight : ndarray of float64, shape (n,), or None
        category_sizes : sequence of int
            Of the encoder.
        seed : int
        seconds_left : callable
            Of a time limit; trees for which none are left are not grown.
        """
        if weight is not None:
            weight = weight / weight.max()  # so that sums stay finite
        largest = float(np.abs(error).max())
        size = np.abs(error) / largest if largest > 0 else np.ones(len(error))
        mean = float(np.average(size, weights=weight))
        size = size / mean
        features, x = TreeFeatures.fit(table, size, weight, category_sizes, seed)
        x = np.hstack([x, standard])
        rows = TreeRows(x, size, weight, x[:0], size[:0], None, features.n_categories, seed % 2**31)
        n_columns = x.shape[1] - features.n_categories
        forest = grow_extra(
            rows,
            seconds_left,
            n_trees=N_TREES,
            min_samples_leaf=max(MIN_LEAF, len(size) // N_LEAVES),
            max_features=max(1, min(MAX_CANDIDATES, n_columns // 2)),
        )
        tiny = float(np.finfo(np.float64).tiny)
        return cls(features, forest, max(mean * (largest or 1.0), tiny))

    def predict(self, table: EncodedTable, standard: NDArray[np.float32]) -> NDArray[np.float64]:
        """Difficulty of rows, (n,), in the units of the target; above 0.

        Parameters
        ----------
        table : EncodedTable
        standard : ndarray of float32, shape (n, t)
            What the networks predict for these rows.
        """
        found = np.empty(table.n_rows)
        size = max(1, _CHUNK_VALUES // max(table.n_features, 1))
        for first in range(0, table.n_rows, size):
            rows = torch.arange(first, min(first + size, table.n_rows))
            x = self.features.transform(table.take(rows))
            x = np.hstack([x, standard[first : first + size]])
            found[first : first + size] = self.forest.predict(x)
        # Means of sizes are above 0, but for what rounding leaves of them.
        return self.unit * (np.maximum(found, 0.0) + EVEN_SHARE)

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and JSON-able facts."""
        tensors = {f"features.{k}": tensor for k, tensor in self.features.to_state().items()}
        arrays, facts = self.forest.to_state()
        tensors |= {f"forest.{name}": tensor for name, tensor in arrays.items()}
        return tensors, {"unit": self.unit, "forest": facts}

    @classmethod
    def from_state(
        cls, tensors: Mapping[str, Tensor], meta: Mapping[str, Any], category_sizes: Sequence[int]
    ) -> Difficulty:
        """Read back :meth:`to_state`; `category_sizes` are those of the encoder."""
        features = TreeFeatures.from_state(state_part(tensors, "features."), category_sizes)
        forest = Forest.from_state(state_part(tensors, "forest."), meta["forest"])
        return cls(features, forest, float(meta["unit"]))


def state_part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
