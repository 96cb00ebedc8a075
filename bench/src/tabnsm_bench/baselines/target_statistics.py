"""Categories as numbers: the mean target of their rows, without a row's own target.

A training row takes the mean of the rows of its category that come before it in a random order,
so that its own target does not leak into its feature; other rows take the mean of all training
rows of the category. Both start from the overall mean, as if that had been seen once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns


class TargetStatistics:
    """Ordered target statistics of every category.

    Parameters
    ----------
    columns : Columns
        Which features are codes.

    Examples
    --------
    >>> x = np.array([[0.0], [0.0], [1.0]], dtype=np.float32)
    >>> statistics = TargetStatistics(Columns((2,)))
    >>> _ = statistics.fit(x, np.array([0.0, 3.0, 6.0]), seed=0)
    >>> (statistics.transform(x) * statistics.std + statistics.mean).ravel().round(3).tolist()
    [2.0, 2.0, 4.5]
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def fit(self, x: NDArray[np.float32], y: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
        """Learn the means, and give the training rows, encoded in a random order.

        Shape
        -----
        x : (n, D)
        y : (n,)
        returned : (n, D)
        """
        self.mean, self.std = float(y.mean()), float(y.std()) or 1.0
        numbers, codes = self.columns.split(x)
        order = np.random.default_rng(seed).permutation(len(y))
        self.tables = []
        encoded = np.empty(codes.shape, dtype=np.float64)
        for j, size in enumerate(self.columns.category_sizes):
            code = codes[:, j]
            sums = np.bincount(code, weights=y, minlength=size)
            counts = np.bincount(code, minlength=size)
            self.tables.append((sums + self.mean) / (counts + 1))
            encoded[:, j] = self._ordered(code, y, order)
        return self._joined(numbers, encoded)

    def transform(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers, then the mean target of each category.

        Shape
        -----
        x : (n, D)
        returned : (n, D)
        """
        numbers, codes = self.columns.split(x)
        columns = [table[code] for table, code in zip(self.tables, codes.T, strict=True)]
        return self._joined(numbers, np.stack(columns, axis=1) if columns else codes)

    def _ordered(
        self, code: NDArray[np.int64], y: NDArray[np.float64], order: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Means over the rows of the same code that come earlier in `order`."""
        by_code = order[np.argsort(code[order], kind="stable")]  # codes together, in order
        sorted_code, sorted_y = code[by_code], y[by_code]
        is_first = np.r_[True, sorted_code[1:] != sorted_code[:-1]]
        start = np.maximum.accumulate(np.where(is_first, np.arange(len(y)), 0))
        before = np.r_[0.0, np.cumsum(sorted_y)]
        n_before = np.arange(len(y)) - start
        means = (before[:-1] - before[start] + self.mean) / (n_before + 1)
        encoded = np.empty(len(y))
        encoded[by_code] = means
        return encoded

    def _joined(self, numbers: NDArray[np.float32], encoded: NDArray[Any]) -> NDArray[np.float32]:
        scaled = (encoded - self.mean) / self.std
        return np.hstack([numbers, scaled]).astype(np.float32)
