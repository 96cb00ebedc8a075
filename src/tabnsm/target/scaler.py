"""TargetScaler: mean, spread and limits of one target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.standardize import CLIP_MARGIN, Standardizer
from tabnsm.target.asinh import AsinhTransform


@dataclass(frozen=True)
class TargetScaler:
    """Mean and spread of the target; a constant one keeps spread 1.

    Parameters
    ----------
    pre_scale : float
        Power of two that keeps huge or tiny targets inside float64; 1 as a rule.
    mean, scale : float
        Mean and standard deviation after that, and after `asinh`.
    asinh : AsinhTransform or None
        The transform of a heavy-tailed target.
    limits : tuple of float or None
        Lowest and highest standardised value that `inverse` takes as it is.

    Examples
    --------
    >>> scaler = TargetScaler.fit(np.array([1.0, 3.0]))
    >>> scaler.transform(np.array([1.0, 3.0]))
    array([-1.,  1.], dtype=float32)
    >>> scaler.inverse(np.array([-1.0, 1.0]))
    array([1., 3.])
    """

    pre_scale: float
    mean: float
    scale: float
    asinh: AsinhTransform | None = None
    limits: tuple[float, float] | None = None

    @classmethod
    def fit(
        cls,
        y: NDArray[np.float64],
        sample_weight: NDArray[np.float64] | None = None,
        *,
        transform: bool = False,
        limit: bool = False,
    ) -> TargetScaler:
        """Measure a target.

        Parameters
        ----------
        y : ndarray of float64
            Finite targets of the fit rows.
        sample_weight : ndarray of float64, optional
            Weight of each row.
        transform : bool, default=False
            Whether a heavy-tailed target is transformed first; see `AsinhTransform.find`.
        limit : bool, default=False
            Whether `inverse` stays within the range of the target, widened by a tenth. A
            transformed target stays within the range itself in any case.

        Returns
        -------
        TargetScaler
            Its mean and spread.

        Examples
        --------
        >>> TargetScaler.fit(np.array([0.0, 10.0]), limit=True).inverse(np.array([-9.0, 9.0]))
        array([-1., 11.])
        """
        y = np.asarray(y, dtype=np.float64)
        unweighted = Standardizer.fit(y[:, None])
        pre_scale = float(unweighted.pre_scale[0])
        y = y * pre_scale
        asinh = AsinhTransform.find(y, sample_weight) if transform else None
        if asinh is not None:
            y = asinh.transform(y)
            unweighted = Standardizer.fit(y[:, None])
        center = float(unweighted.center[0])
        scaler = cls(pre_scale, center, float(unweighted.scale[0]), asinh)
        if sample_weight is not None:
            scaler = scaler._weighted(y, sample_weight)
        if limit and asinh is None and unweighted.varies[0]:
            low, high = ((bound - scaler.mean) / scaler.scale for bound in (y.min(), y.max()))
            margin = CLIP_MARGIN * (high - low)
            scaler = replace(scaler, limits=(float(low - margin), float(high + margin)))
        return scaler

    def _weighted(self, y: NDArray[np.float64], sample_weight: NDArray[np.float64]) -> TargetScaler:
        """With mean and spread of weighted rows; `y` after `pre_scale` and `asinh`."""
        weight = np.asarray(sample_weight, dtype=np.float64)
        # Only ratios matter, and the largest weight as unit keeps every sum finite.
        weight = weight / weight.max()
        deviation = y - self.mean
        shift = float((weight * deviation).sum() / weight.sum())
        spread = float(np.sqrt((weight * np.square(deviation - shift)).sum() / weight.sum()))
        return replace(self, mean=self.mean + shift, scale=spread if spread > 0 else 1.0)

    def widened(self, y: NDArray[np.float64]) -> TargetScaler:
        """The same scale with limits that hold further targets, too.

        Parameters
        ----------
        y : ndarray of float64
            Finite targets.

        Returns
        -------
        TargetScaler

        Examples
        --------
        >>> scaler = TargetScaler.fit(np.array([0.0, 10.0]), limit=True)
        >>> scaler.widened(np.array([20.0])).inverse(np.array([-9.0, 9.0]))
        array([-2., 22.])
        """
        if self.asinh is not None:
            y = self.asinh.transform(y * self.pre_scale)
            low, high = min(self.asinh.lowest, y.min()), max(self.asinh.highest, y.max())
            asinh = replace(self.asinh, lowest=float(low), highest=float(high))
            return replace(self, asinh=asinh)
        if self.limits is None:
            return self
        # Limits are a tenth of the range outside it on either side.
        margin = CLIP_MARGIN / (1 + 2 * CLIP_MARGIN) * (self.limits[1] - self.limits[0])
        standard = self.transform(y).astype(np.float64)
        low = min(self.limits[0] + margin, standard.min())
        high = max(self.limits[1] - margin, standard.max())
        margin = CLIP_MARGIN * (high - low)
        low, high = min(self.limits[0], low - margin), max(self.limits[1], high + margin)
        return replace(self, limits=(float(low), float(high)))

    def transform(self, y: NDArray[np.float64]) -> NDArray[np.float32]:
        """Standardised target.

        Parameters
        ----------
        y : ndarray of float64
            Targets.

        Returns
        -------
        ndarray of float32
            Mean 0 and spread 1 on the fit rows.
        """
        y = np.asarray(y, dtype=np.float64) * self.pre_scale
        if self.asinh is not None:
            y = self.asinh.transform(y)
        return ((y - self.mean) / self.scale).astype(np.float32)

    def inverse(self, standard: NDArray[Any]) -> NDArray[np.float64]:
        """Back to the units of the target.

        Parameters
        ----------
        standard : ndarray
            Standardised values.

        Returns
        -------
        ndarray of float64
            Values in the units of the target.
        """
        standard = np.asarray(standard, dtype=np.float64)
        if self.limits is not None:
            standard = np.clip(standard, *self.limits)
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore"):
            values = standard * self.scale + self.mean
            if self.asinh is not None:
                values = self.asinh.inverse(values)
            values = values / self.pre_scale
        return np.clip(values, -largest, largest)

    def to_state(self) -> dict[str, Any]:
        """JSON-able form.

        Returns
        -------
        dict
            Its numbers.
        """
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TargetScaler:
        """Read back :meth:`to_state`.

        Parameters
        ----------
        state : dict
            Its numbers; transform and limits are missing in models of earlier versions.

        Returns
        -------
        TargetScaler
            The same scaler.
        """
        asinh, limits = state.get("asinh"), state.get("limits")
        return cls(
            **state
            | {
                "asinh": None if asinh is None else AsinhTransform(**asinh),
                "limits": None if limits is None else tuple(limits),
            }
        )
