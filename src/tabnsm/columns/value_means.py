"""Means of the target that are looked up: by a value of a feature, or by a day of the calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.schema import ColumnSpec


@dataclass(frozen=True)
class ValueMeans:
    """The means of one target by the values of one encoded feature.

    Parameters
    ----------
    feature : int
        Position of the encoded feature.
    target : int
        Which target.
    values : ndarray of float32
        Its values in the fit rows, ascending.
    means : ndarray of float32
        Shrunken mean of each value, standardised, 0 where nothing is known.
    gain : float
        Share of the target's variance that it explains in rows that were left out of it.
    """

    feature: int
    target: int
    values: NDArray[np.float32]
    means: NDArray[np.float32]
    gain: float
    suffix: ClassVar[str] = "target_mean"

    @property
    def look_ups(self) -> list[tuple[int, NDArray[np.float32]]]:
        """Each feature with its values."""
        return [(self.feature, self.values)]

    def apply(self, dense: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean of each row's value, from all dense features."""
        return self.look_up(dense[:, self.feature])

    def look_up(self, column: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean of each row's value; 0, the mean of all, for a value never seen."""
        place = np.searchsorted(self.values, column).clip(max=len(self.values) - 1)
        return np.where(self.values[place] == column, self.means[place], np.float32(0))

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts."""
        tensors = {"values": torch.from_numpy(self.values), "means": torch.from_numpy(self.means)}
        return tensors, {"feature": self.feature, "target": self.target, "gain": self.gain}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """Rebuild what `to_state` gave."""
        values, means = (tensors[name].numpy().copy() for name in ("values", "means"))
        return cls(facts["feature"], facts["target"], values, means, facts["gain"])


@dataclass(frozen=True)
class DayMeans:
    """What each day of a calendar adds to one target.

    Parameters
    ----------
    features : tuple of int
        Positions of the encoded features month, weekday and day.
    target : int
        Which target.
    values : tuple of ndarray of float32
        Values of these features in the fit rows, ascending.
    means : ndarray of float32, shape (months, weekdays, days)
        Standardised.
    gain : float
        Share of what the other columns leave open that it explains in years left out of it.
    """

    features: tuple[int, ...]
    target: int
    values: tuple[NDArray[np.float32], ...]
    means: NDArray[np.float32]
    gain: float
    suffix: ClassVar[str] = "recurring"

    @property
    def feature(self) -> int:
        """The first of its features, by which its column is known."""
        return self.features[0]

    @property
    def look_ups(self) -> list[tuple[int, NDArray[np.float32]]]:
        """Each feature with its values."""
        return list(zip(self.features, self.values, strict=True))

    def apply(self, dense: NDArray[np.float32]) -> NDArray[np.float32]:
        """What each row's day adds; 0 for a day never seen or missing."""
        known, places = np.ones(len(dense), dtype=bool), []
        for feature, values in self.look_ups:
            column = dense[:, feature]
            place = np.searchsorted(values, column).clip(max=len(values) - 1)
            known &= values[place] == column
            places.append(place)
        return np.where(known, self.means[tuple(places)], np.float32(0))

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON-able facts."""
        tensors = {f"values.{k}": torch.from_numpy(part) for k, part in enumerate(self.values)}
        facts = {"features": list(self.features), "target": self.target, "gain": self.gain}
        return {"means": torch.from_numpy(self.means), **tensors}, facts

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Self:
        """Rebuild what `to_state` gave."""
        features = tuple(facts["features"])
        values = tuple(tensors[f"values.{k}"].numpy().copy() for k in range(len(features)))
        means = tensors["means"].numpy().copy()
        return cls(features, facts["target"], values, means, facts["gain"])


Means = ValueMeans | DayMeans


def mean_feature(part: Means, layout: Layout, specs: Sequence[ColumnSpec]) -> Feature:
    """Name and column of the feature that holds a mean, in the layout of the others."""
    position = layout.columns[part.feature]
    column = next(spec.name for spec in specs if spec.position == position)
    name = column if isinstance(part, DayMeans) else layout.names[part.feature]
    return Feature(f"{name}_{part.suffix}", position)
