"""Calibration: quantiles of every target from points, difficulties and held-out scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.intervals.conformal import conformal_quantiles, reachable_levels
from tabnsm.intervals.difficulty import Difficulty, state_part

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TargetCalibration:
    """What makes quantiles of one target.

    A score is the error of a held-out row, true value minus prediction, over its difficulty. A
    quantile of a new row is its prediction plus its difficulty times the quantile of the scores,
    so quantiles never cross.

    Parameters
    ----------
    difficulty : Difficulty
    scores : ndarray of float64, shape (n,)
        Of the held-out rows, sorted.
    weight : ndarray of float64, shape (n,), or None
        Of these rows.
    limits : tuple of float
        Lowest and highest value that quantiles take; infinite without a limit.
    """

    difficulty: Difficulty
    scores: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    limits: tuple[float, float]

    def quantiles(
        self,
        prediction: NDArray[np.float64],
        table: EncodedTable,
        standard: NDArray[np.float32],
        levels: Sequence[float],
    ) -> NDArray[np.float64]:
        """Quantiles of rows, (n, q).

        Parameters
        ----------
        prediction : ndarray of float64, shape (n,)
            Of the model.
        table : EncodedTable
        standard : ndarray of float32, shape (n, t)
            Of the networks, for all targets.
        levels : sequence of float
            Those that the calibration rows reach.
        """
        difficulty = self.difficulty.predict(table, standard)
        scores = conformal_quantiles(self.scores, self.weight, levels)  # (q,)
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            found = prediction[:, None] + difficulty[:, None] * scores  # (n, q)
        # A prediction beyond the limits stays inside its intervals.
        low = np.minimum(prediction, max(self.limits[0], -largest))[:, None]
        high = np.maximum(prediction, min(self.limits[1], largest))[:, None]
        return np.asarray(np.clip(found, low, high))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Quantiles of all targets.

    Parameters
    ----------
    targets : tuple of TargetCalibration or None
        None for a target that no held-out row has.
    """

    targets: tuple[TargetCalibration | None, ...]

    @property
    def max_confidence(self) -> float:
        """Highest confidence level that the calibration rows of all targets give."""
        n_rows = [0 if target is None else len(target.scores) for target in self.targets]
        return 1 - 2 / (min(n_rows) + 1)

    def reached(self, confidence_levels: Sequence[float]) -> list[float]:
        """Those of some confidence levels that the calibration rows give."""
        return [level for level in confidence_levels if level <= self.max_confidence + _ROUNDING]

    def check(self, levels: Sequence[float], labels: Sequence[str]) -> None:
        """Refuse levels of quantiles that the calibration rows cannot give.

        Parameters
        ----------
        levels : sequence of float
        labels : sequence of str
            Of the targets.
        """
        for target, label in zip(self.targets, labels, strict=True):
            if target is None:
                raise InvalidDataError(
                    "Every target must have values in the rows held out by fit, got none of "
                    f"target {label}. Fit again with rows of your own (X_val, y_val)."
                )
            n_rows = len(target.scores)
            lowest, highest = reachable_levels(n_rows)
            tail = min(*levels, *(1 - level for level in levels))
            if tail < lowest - _ROUNDING:
                raise InvalidOptionError(
                    f"With {n_rows} calibration rows, confidence_level must be at most "
                    f"{highest - lowest:.3g} and quantiles from {lowest:.3g} to {highest:.3g}, got "
                    f"{1 - 2 * tail:.6g}, or a quantile of {tail:.6g} or {1 - tail:.6g}. At least "
                    f"{int(np.ceil(1 / tail - _ROUNDING)) - 1} are needed: fit again with a larger "
                    "validation_fraction, or with more rows of your own (X_val, y_val)."
                )

    def quantiles(
        self,
        prediction: NDArray[np.float64],
        table: EncodedTable,
        standard: NDArray[np.float32],
        levels: Sequence[float],
    ) -> NDArray[np.float64]:
        """Quantiles of rows, (n, t, q), of levels that `check` has accepted.

        Parameters
        ----------
        prediction : ndarray of float64, shape (n, t)
        table, standard, levels
            As in `TargetCalibration.quantiles`.
        """
        found = [
            target.quantiles(prediction[:, k], table, standard, levels)
            for k, target in enumerate(self.targets)
            if target is not None
        ]
        return np.stack(found, axis=1)

    def to_state(self) -> tuple[dict[str, Tensor], list[dict[str, Any] | None]]:
        """Tensors, and JSON-able facts of each target."""
        tensors: dict[str, Tensor] = {}
        entries: list[dict[str, Any] | None] = []
        for k, target in enumerate(self.targets):
            if target is None:
                entries.append(None)
                continue
            arrays, facts = target.difficulty.to_state()
            arrays["scores"] = torch.from_numpy(target.scores)
            if target.weight is not None:
                arrays["weight"] = torch.from_numpy(target.weight)
            tensors |= {f"{k}.{name}": tensor for name, tensor in arrays.items()}
            limits = [limit if np.isfinite(limit) else None for limit in target.limits]
            entries.append({"difficulty": facts, "limits": limits})
        return tensors, entries

    @classmethod
    def from_state(
        cls,
        tensors: Mapping[str, Tensor],
        entries: Sequence[Mapping[str, Any] | None],
        category_sizes: Sequence[int],
    ) -> Calibration:
        """Read back :meth:`to_state`; `category_sizes` are those of the encoder."""
        targets: list[TargetCalibration | None] = []
        for k, entry in enumerate(entries):
            if entry is None:
                targets.append(None)
                continue
            own = state_part(tensors, f"{k}.")
            low, high = entry["limits"]
            targets.append(
                TargetCalibration(
                    Difficulty.from_state(own, entry["difficulty"], category_sizes),
                    own["scores"].numpy(),
                    own["weight"].numpy() if "weight" in own else None,
                    (-np.inf if low is None else low, np.inf if high is None else high),
                )
            )
        return cls(tuple(targets))
