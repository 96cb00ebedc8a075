"""The dense features while an encoder is fitted: in memory, or in a file, feature by feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.bins import find_bins
from tabnsm.columns.recurring_days import DateFeatures, find_recurring_days
from tabnsm.columns.target_means import TargetMeans
from tabnsm.work_folder import WorkFolder

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


class Dense(Protocol):
    """Features of all rows, of which some may go and others come."""

    @property
    def array(self) -> Floats:
        """All features, (n_rows, n_features)."""

    def keep(self, kept: Bools) -> None:
        """Leave out some features."""

    def append(self, added: Any) -> None:
        """Add the features of `fit_means`."""

    def fit_means(
        self,
        target: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
        sizes: Sequence[int],
        dates: Sequence[DateFeatures],
    ) -> tuple[TargetMeans, Any]:
        """Means of the target, and the features that they are; see `TargetMeans.fit`.

        Where all features are on this machine, they are also of days that recur.
        """

    def find_bins(
        self, rows: NDArray[np.int64] | None, is_number: Bools, n_features: int, n_bins: int
    ) -> Tensor:
        """Bins of the features; see `find_bins`."""


class _Features:
    """What is found in features that are on this machine."""

    array: Floats

    def fit_means(
        self,
        target: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
        sizes: Sequence[int],
        dates: Sequence[DateFeatures],
    ) -> tuple[TargetMeans, Floats]:
        """Means of the target, and the features that they are, (n_rows, n_added)."""
        means, features = TargetMeans.fit(self.array, target, rows, sizes)
        days = find_recurring_days(self.array, sizes, dates, target, rows)
        if not days:
            return means, features
        added = TargetMeans([found.part for found in days]).transform(self.array)
        for k, found in enumerate(days):
            added[found.rows, k] = found.held_out
        parts = [*means.parts, *(found.part for found in days)]
        return TargetMeans(parts), np.hstack([features, added])

    def find_bins(
        self, rows: NDArray[np.int64] | None, is_number: Bools, n_features: int, n_bins: int
    ) -> Tensor:
        """Bins of the features."""
        return find_bins(self.array, rows, is_number, n_features, n_bins)


class MemoryDense(_Features):
    """Features in memory, row by row."""

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.array: Floats = np.empty((n_rows, n_features), dtype=np.float32)

    def keep(self, kept: Bools) -> None:
        """Leave out some features."""
        self.array = self.array[:, kept]

    def append(self, added: Floats) -> None:
        """Add features."""
        self.array = np.hstack([self.array, added])


class MappedDense(_Features):
    """Features in a file, one after the other: a fit looks at one feature of all rows at a time.

    Parameters
    ----------
    folder : WorkFolder
    name : str
        Of the file.
    n_rows, n_features : int
    n_more : int, default 0
        Features that may be appended.
    """

    def __init__(
        self, folder: WorkFolder, name: str, n_rows: int, n_features: int, n_more: int = 0
    ) -> None:
        self._features = folder.empty(name, (n_features + n_more, n_rows))
        self._width = n_features

    @property
    def array(self) -> Floats:  # type: ignore[override]
        """All features, as a view."""
        return np.asarray(self._features[: self._width].T)

    def keep(self, kept: Bools) -> None:
        """Leave out some features."""
        places = np.flatnonzero(kept)
        for target, place in enumerate(places):
            if target != place:
                self._features[target] = self._features[place]
        self._width = len(places)

    def append(self, added: Floats) -> None:
        """Add features."""
        self._features[self._width : self._width + added.shape[1]] = added.T
        self._width += added.shape[1]


def make_dense(
    folder: WorkFolder | None, name: str, n_rows: int, n_features: int, n_more: int = 0
) -> Dense:
    """Room for features, in memory if there is no folder."""
    if folder is None:
        return MemoryDense(n_rows, n_features)
    return MappedDense(folder, name, n_rows, n_features, n_more)
