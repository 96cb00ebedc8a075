"""Means of the target by the values of a column, cross-fitted: for identifiers and codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.large import LARGE_ROWS, row_slices, sample_rows
from tabnsm.columns.value_means import DayMeans, Means, ValueMeans

Floats = NDArray[np.float64]

# NOTE[DIFF]: the paper knows a value by its size or its embedding alone.
N_FOLDS = 5
# With fewer values the bins of a number tell all of them apart, and an embedding has rows enough.
MIN_VALUES = 64
# Fewer rows per value hold no mean; with more an embedding learns by itself.
MIN_ROWS, MAX_CATEGORY_ROWS = 1.5, 100
# Share of the target's variance that a mean must explain beyond what bins of a number do.
MIN_GAIN = 0.02
N_BINS = 64
MAX_FEATURES = 8
_PRIOR_LIMITS = (0.1, 1000.0)


class TargetMeans:
    """Features that hold the mean of the target for a value of another feature.

    A column such as a school, a route or a tail number has many values with a few rows each: too
    many for bins, too few rows for an embedding. The feature of a training row comes from the
    other folds, so that a row's own target is not in it.

    Parameters
    ----------
    parts : sequence of ValueMeans or DayMeans

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> school = np.repeat(np.arange(100), 10)
    >>> target = rng.normal(size=100)[school] + 0.1 * rng.normal(size=1000)
    >>> dense = school[:, None].astype(np.float32)
    >>> means, fitted = TargetMeans.fit(dense, target[:, None], None, (0,))
    >>> len(means.parts), fitted.shape, bool(np.corrcoef(fitted[:, 0], target)[0, 1] > 0.9)
    (1, (1000, 1), True)
    """

    def __init__(self, parts: Sequence[Means] = ()) -> None:
        self.parts: list[Means] = list(parts)

    @classmethod
    def fit(
        cls,
        dense: NDArray[np.float32],
        target: Floats,
        rows: NDArray[np.int64] | None,
        category_sizes: Sequence[int],
    ) -> tuple[Self, NDArray[np.float32]]:
        """Find the features that are worth it, and their values in all rows.

        Parameters
        ----------
        dense : ndarray of float32, shape (n, d)
            Encoded features but text.
        target : ndarray of float64, shape (n, t)
            Entries that are missing are left out.
        rows : ndarray of int64 or None
            Fit rows; None for all. Of more than two million, so many are used.
        category_sizes : sequence of int
            Number of codes of each feature, 0 for a number.

        Returns
        -------
        TargetMeans, ndarray of float32 of shape (n, number of parts)
        """
        fit = MeansFit(target, np.arange(len(dense)) if rows is None else rows)
        columns = (dense[fit.rows, feature] for feature in range(dense.shape[1]))
        found = [
            part
            for feature, column in enumerate(columns)
            for part in fit.of_feature(column, feature, category_sizes[feature])
        ]
        best = best_means(found)
        means = cls([part for part, _ in best])
        features = means.transform(dense)
        for k, (_, held_out) in enumerate(best):
            features[fit.rows, k] = held_out
        return means, features

    def transform(self, dense: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features of new rows, shape (n, number of parts)."""
        features = np.empty((len(dense), len(self.parts)), dtype=np.float32)
        for k, part in enumerate(self.parts):
            for rows in row_slices(len(dense)):
                features[rows, k] = part.apply(dense[rows])
        return features

    def to_state(self) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        """Tensors and JSON-able facts."""
        tensors: dict[str, Tensor] = {}
        facts: list[dict[str, Any]] = []
        for k, part in enumerate(self.parts):
            own, fact = part.to_state()
            tensors |= {f"target_means.{k}.{name}": tensor for name, tensor in own.items()}
            facts.append(fact)
        return tensors, facts

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Sequence[Mapping[str, Any]]) -> Self:
        """Rebuild what `to_state` gave."""
        parts: list[Means] = []
        for k, fact in enumerate(facts):
            prefix = f"target_means.{k}."
            own = {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
            kind = DayMeans if "features" in fact else ValueMeans
            parts.append(kind.from_state(own, fact))
        return cls(parts)


FoundMeans = tuple[ValueMeans, Floats]
"""Means of a feature, and its values in the rows that they come from, each from other folds."""


class MeansFit:
    """What the means of all features have in common: rows, folds and standardised targets.

    Parameters
    ----------
    target : ndarray of float64, shape (n, t)
    rows : ndarray of int64
        Fit rows.

    Attributes
    ----------
    rows : ndarray of int64
        Those that are used: of more than two million, so many.
    """

    def __init__(self, target: Floats, rows: NDArray[np.int64]) -> None:
        self.rows = rows = self.rows_of(rows)
        self._folds = np.random.default_rng(0).permutation(len(rows)) % N_FOLDS
        self._targets: list[tuple[int, NDArray[np.bool_], Floats]] = []
        for t in range(target.shape[1]):
            known = np.isfinite(target[rows, t])
            if known.sum() >= MIN_VALUES:
                self._targets.append((t, known, _standard(target[rows[known], t])))

    @staticmethod
    def rows_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the fit rows that are used."""
        is_large = len(rows) > LARGE_ROWS
        return rows[sample_rows(len(rows), LARGE_ROWS)] if is_large else rows

    def of_feature(
        self, column: NDArray[np.float32], feature: int, n_codes: int
    ) -> list[FoundMeans]:
        """Means of the targets by the values of one feature in `rows`, where they are of use."""
        found = []
        for t, known, y in self._targets:
            part = _fit_feature(column[known], y, self._folds[known], feature, t, n_codes)
            if part is not None:
                held_out = np.zeros(len(column))
                held_out[known] = part[1]
                found.append((part[0], held_out))
        return found


def best_means(found: Sequence[FoundMeans]) -> list[FoundMeans]:
    """Those of each target that explain most, of features in ascending order."""
    best = []
    for t in sorted({part.target for part, _ in found}):
        mine = [entry for entry in found if entry[0].target == t]
        best += sorted(mine, key=lambda entry: -entry[0].gain)[:MAX_FEATURES]
    return best


def scaled(y: Floats) -> Floats:
    """The same over a power of two, so that squares neither overflow nor vanish."""
    largest = np.abs(y).max(initial=0.0)
    return np.ldexp(y, -np.frexp(largest)[1]) if largest > 0 else y


def _standard(y: Floats) -> Floats:
    """Targets without their outermost hundredths, with mean 0 and spread 1."""
    y = np.clip(scaled(y), *np.quantile(scaled(y), (0.01, 0.99)))
    return np.asarray((y - y.mean()) / (y.std() or 1.0))


def _fit_feature(
    column: NDArray[np.float32],
    y: Floats,
    folds: NDArray[np.int64],
    feature: int,
    target: int,
    n_codes: int,
) -> tuple[ValueMeans, Floats] | None:
    """Means of one feature, and those of the fit rows from other folds; None if of no use."""
    values, code = np.unique(column, return_inverse=True)
    rows_per_value = len(column) / len(values)
    if len(values) < MIN_VALUES or rows_per_value < MIN_ROWS:
        return None
    if n_codes and rows_per_value > MAX_CATEGORY_ROWS:
        return None
    held_out = _cross_fit(code, y, folds, len(values))
    gain = _explained(held_out, y)
    if not n_codes:
        bins = np.searchsorted(np.quantile(column, np.linspace(0, 1, N_BINS + 1)[1:-1]), column)
        gain -= max(_explained(_cross_fit(bins, y, folds, N_BINS), y), 0.0)
    if gain < MIN_GAIN:
        return None
    scale = held_out.std() or 1.0
    means = (shrunken_means(code, y, len(values)) / scale).astype(np.float32)
    return ValueMeans(feature, target, values, means, float(gain)), held_out / scale


def _cross_fit(
    code: NDArray[np.int64], y: Floats, folds: NDArray[np.int64], n_values: int
) -> Floats:
    held_out = np.zeros(len(y))
    for fold in range(N_FOLDS):
        inside = folds == fold
        means = shrunken_means(code[~inside], y[~inside], n_values)
        held_out[inside] = means[code[inside]]
    return held_out


def shrunken_means(code: NDArray[np.int64], y: Floats, n_values: int) -> Floats:
    """Means by value, drawn to 0 by as many rows as the noise within values asks for."""
    count = np.bincount(code, minlength=n_values).astype(np.float64)
    total = np.bincount(code, weights=y, minlength=n_values)
    mean = total / np.maximum(count, 1)
    n_free = max(len(y) - np.count_nonzero(count), 1)
    within = np.square(y - mean[code]).sum() / n_free
    between = max(np.square(y).mean() - within, 1e-12)
    prior = np.clip(within / between, *_PRIOR_LIMITS)
    return np.asarray(total / (count + prior))


def _explained(held_out: Floats, y: Floats) -> float:
    return float(1 - np.square(y - held_out).sum() / max(np.square(y).sum(), 1e-300))
