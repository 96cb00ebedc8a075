"""TargetModel: from targets to what networks learn, and from their predictions back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidOptionError
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
    names : tuple of str or None, default None
        Of the targets, if they have any.

    Shape
    -----
    targets, residuals, standardised residuals and predictions : (n, t); targets, and with them
    residuals, are NaN where missing

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
    names: tuple[str, ...] | None = None

    @classmethod
    def fit(
        cls,
        residual: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        config: TargetConfig,
        linear_fits: Sequence[LinearFit | None] | None = None,
        names: tuple[str, ...] | None = None,
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
        names : tuple of str or None
            Of the targets.

        Returns
        -------
        TargetModel
        """
        scalers = [
            TargetScaler.fit(
                *present_rows(column, weight),
                transform=config.target_transform == "auto",
                limit=config.clip_predictions,
            )
            for column in residual.T
        ]
        return cls(tuple(scalers), tuple(linear_fits or [None] * len(scalers)), names)

    @property
    def n_targets(self) -> int:
        """Number of targets, t."""
        return len(self.scalers)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the targets, or their numbers, counted from 1."""
        return self.names or tuple(str(k + 1) for k in range(self.n_targets))

    @property
    def prediction_names(self) -> tuple[str, ...]:
        """Columns for predictions in files: "prediction", or "prediction_NAME" of each target."""
        if self.n_targets == 1:
            return ("prediction",)
        return tuple(f"prediction_{label}" for label in self.labels)

    def position(self, target: str | int | None) -> int:
        """Which target a name, or a number counted from 0, means; None means the only one."""
        if target is None and self.n_targets == 1:
            return 0
        by_name = isinstance(target, str)
        known = (self.names or ()) if by_name else range(self.n_targets)
        if target in known and not isinstance(target, bool):
            return (self.names or ()).index(target) if by_name else int(target)  # type: ignore[arg-type]
        choices = ", ".join(repr(name) for name in (self.names or range(self.n_targets)))
        raise InvalidOptionError(
            f"target must be one of the model's {self.n_targets} target(s), {choices}, got "
            f"{target!r}. Call once for each of them."
        )

    def for_target(self, place: int) -> TargetModel:
        """Of one of the targets alone."""
        names = None if self.names is None else (self.names[place],)
        return TargetModel((self.scalers[place],), (self.linear_fits[place],), names)

    def mean_score(
        self,
        score: Callable[[NDArray[Any], NDArray[Any], NDArray[Any] | None], float],
        residual: NDArray[np.float64],
        prediction: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
    ) -> float:
        """Mean of a score over the targets, each in its own standard deviations.

        So no target's unit outweighs the others. A transformed target counts on its transformed
        scale; one with a linear fit counts in standard deviations of the target, not of its
        residual. Targets without an entry are left out.

        Parameters
        ----------
        score : callable
            Of truth, prediction and weights of some rows.
        residual, prediction : ndarray of float64, shape (n, t)
            In the units of the targets.
        weight : ndarray of float64, shape (n,), or None

        Returns
        -------
        float
        """
        wanted, found = (self.standardize(v).astype(np.float64) for v in (residual, prediction))
        scores = []
        for k, (scaler, linear) in enumerate(zip(self.scalers, self.linear_fits, strict=True)):
            present = ~np.isnan(wanted[:, k])
            if present.any():
                rows = None if weight is None else weight[present]
                share = 1.0 if linear is None else linear.share_of(scaler)
                scores.append(share * score(wanted[present, k], found[present, k], rows))
        return float(np.mean(scores))

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
            if self.names is not None:
                entries[-1]["name"] = self.names[k]
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
        names = tuple(entry["name"] for entry in entries if "name" in entry)
        return cls(tuple(scalers), tuple(linear_fits), names or None)


def present_rows(
    target: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """One target, (n,), and its weights without the rows where it is missing.

    Examples
    --------
    >>> present_rows(np.array([1.0, np.nan, 3.0]), None)
    (array([1., 3.]), None)
    """
    missing = np.isnan(target)
    if not missing.any():
        return target, weight
    return target[~missing], None if weight is None else weight[~missing]
