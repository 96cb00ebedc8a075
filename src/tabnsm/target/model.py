"""TargetModel: from targets to what networks learn, and from their predictions back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.target.config import TargetConfig
from tabnsm.target.linear_fit import LinearFit
from tabnsm.target.scaler import TargetScaler


@dataclass(frozen=True)
class TargetModel:
    """Linear fit, transform, scale and limits of every target.

    A target is a linear fit of the encoded rows, if it has one, plus a residual, which networks
    learn and predict standardised.

    Parameters
    ----------
    scalers : tuple of TargetScaler
        Of the residual of each target.
    linear_fits : tuple of LinearFit or None
        Of each target; None where the residual is the target itself.

    Shape
    -----
    targets, residuals, standardised residuals and predictions : (n, t)

    Examples
    --------
    >>> model = TargetModel.fit(np.array([[1.0], [3.0]]), None, TargetConfig())
    >>> model.standardize(np.array([[1.0], [3.0]]))
    array([[-1.],
           [ 1.]], dtype=float32)
    >>> model.unstandardize(np.array([[0.0]]))
    array([[2.]])
    """

    scalers: tuple[TargetScaler, ...]
    linear_fits: tuple[LinearFit | None, ...]

    @classmethod
    def fit(
        cls,
        residual: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        config: TargetConfig,
        linear_fits: Sequence[LinearFit | None] | None = None,
    ) -> TargetModel:
        """Measure what networks are to learn.

        Parameters
        ----------
        residual : ndarray of float64, shape (n, t)
            Of the training rows.
        weight : ndarray of float64, shape (n,), or None
        config : TargetConfig
        linear_fits : sequence of LinearFit or None
            What `residual` is the residual of; None if it is the target itself.

        Returns
        -------
        TargetModel
        """
        scalers = [
            TargetScaler.fit(
                column,
                weight,
                transform=config.target_transform == "auto",
                limit=config.clip_predictions,
            )
            for column in residual.T
        ]
        return cls(tuple(scalers), tuple(linear_fits or [None] * len(scalers)))

    @property
    def n_targets(self) -> int:
        """Number of targets, t."""
        return len(self.scalers)

    @property
    def is_transformed(self) -> bool:
        """Whether some target is learned as its asinh."""
        return any(scaler.asinh is not None for scaler in self.scalers)

    @property
    def has_linear_fit(self) -> bool:
        """Whether networks learn the residual of a linear fit of some target."""
        return any(linear is not None for linear in self.linear_fits)

    def transform(self, target: NDArray[np.float64], table: EncodedTable) -> NDArray[np.float32]:
        """What networks should predict for these rows.

        Parameters
        ----------
        target : ndarray of float64, shape (n, t)
        table : EncodedTable
            Their encoded rows.

        Returns
        -------
        ndarray of float32, shape (n, t)
        """
        columns = [
            column if linear is None else column - linear.predict(table)
            for column, linear in zip(target.T, self.linear_fits, strict=True)
        ]
        return self.standardize(np.stack(columns, axis=1))

    def predict(self, standard: NDArray[Any], table: EncodedTable) -> NDArray[np.float64]:
        """Targets from what networks predict.

        Parameters
        ----------
        standard : ndarray, shape (n, t)
            Predictions of the networks.
        table : EncodedTable
            Their encoded rows.

        Returns
        -------
        ndarray of float64, shape (n, t)
            In the units of the targets.
        """
        prediction = self.unstandardize(standard)
        for column, linear in zip(prediction.T, self.linear_fits, strict=True):
            if linear is not None:
                column += linear.predict(table)
        return prediction

    def standardize(self, residual: NDArray[np.float64]) -> NDArray[np.float32]:
        """Residuals as networks learn them, (n, t)."""
        pairs = zip(self.scalers, residual.T, strict=True)
        return np.stack([scaler.transform(column) for scaler, column in pairs], axis=1)

    def unstandardize(self, standard: NDArray[Any]) -> NDArray[np.float64]:
        """Residuals in the units of the targets, (n, t), from what networks predict."""
        pairs = zip(self.scalers, standard.T, strict=True)
        return np.stack([scaler.inverse(column) for scaler, column in pairs], axis=1)

    def to_state(self) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
        """Tensors, and JSON-able entries of each target."""
        tensors: dict[str, Tensor] = {}
        entries: list[dict[str, Any]] = []
        for k, (scaler, linear) in enumerate(zip(self.scalers, self.linear_fits, strict=True)):
            if linear is not None:
                tensors |= {f"{k}.slope": linear.slope, f"{k}.code_value": linear.code_value}
            whole = None if linear is None else linear.scaler.to_state()
            entries.append({"scaler": scaler.to_state(), "linear_scaler": whole})
        return tensors, entries

    @classmethod
    def from_state(
        cls,
        tensors: dict[str, Tensor],
        entries: Sequence[dict[str, Any]],
        category_sizes: Sequence[int],
    ) -> TargetModel:
        """Read back :meth:`to_state`; `category_sizes` are those of the encoder."""
        linear_fits = [
            None
            if entry["linear_scaler"] is None
            else LinearFit(
                tensors[f"{k}.slope"],
                tensors[f"{k}.code_value"],
                tuple(category_sizes),
                TargetScaler.from_state(entry["linear_scaler"]),
            )
            for k, entry in enumerate(entries)
        ]
        scalers = [TargetScaler.from_state(entry["scaler"]) for entry in entries]
        return cls(tuple(scalers), tuple(linear_fits))
