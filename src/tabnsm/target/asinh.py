"""AsinhTransform: the scale of targets of which a few rows carry most of the squared deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RARE_SHARE = 1e-3
"""Share of the rows that counts as a few."""
HEAVY_SHARE = 0.5
"""Share of the squared deviation above which these few are too heavy."""
MIN_ROWS = 100
"""With fewer rows one of them carries most of the deviation by chance."""
_SAME = 1e-9  # relative distance from the median that is rounding
_MAX_TRANSFORMED = 800.0  # beyond the arsinh of any float


@dataclass(frozen=True)
class AsinhTransform:
    """The inverse hyperbolic sine: linear near the median, logarithmic far from it.

    Parameters
    ----------
    median, unit : float
        Where the scale is linear, and how far.
    lowest, highest : float
        Range of the fit rows on this scale. What is brought back stays inside: a small step
        beyond the largest target would otherwise be a huge one.

    Examples
    --------
    >>> asinh = AsinhTransform.find(np.array([*range(1, 200), 1e6]))
    >>> asinh.transform(np.array([100.5, 150.5, 1e6])).round(2)
    array([ 0.  ,  0.88, 10.6 ])
    >>> asinh.inverse(np.array([0.0, 0.88, 99.0])).round()
    array([1.0e+02, 1.5e+02, 1.0e+06])
    """

    median: float
    unit: float
    lowest: float
    highest: float

    @classmethod
    def find(
        cls, y: NDArray[np.float64], sample_weight: NDArray[np.float64] | None = None
    ) -> AsinhTransform | None:
        """The transform for a target, or None where no few rows carry most of its spread.

        Of at least a hundred rows, one in a thousand, and one at least, must carry over half of
        the squared deviation from the mean.

        Parameters
        ----------
        y : ndarray of float64
            Finite targets of the fit rows, such that their squares are finite too.
        sample_weight : ndarray of float64, optional
            Weight of each row's squared deviation.

        Returns
        -------
        AsinhTransform or None

        Examples
        --------
        >>> AsinhTransform.find(np.array([1.0, 2.0, 3.0, 4.0]))
        """
        if len(y) < MIN_ROWS:
            return None
        weight = None if sample_weight is None else sample_weight / sample_weight.max()
        # In place, because a large table has many targets.
        squares = y - np.average(y, weights=weight)
        np.square(squares, out=squares)
        if weight is not None:
            squares *= weight
        total = squares.sum()
        n_rare = -(-len(y) // round(1 / RARE_SHARE))
        squares.partition(len(y) - n_rare)
        if squares[len(y) - n_rare :].sum() <= HEAVY_SHARE * total:
            return None
        median = float(np.median(y))
        distance = np.abs(y - median)
        # Of the rows that are not at the median: most may be there.
        unit = float(np.median(distance[distance > _SAME * abs(median)]))
        found = cls(median, unit, -_MAX_TRANSFORMED, _MAX_TRANSFORMED)
        transformed = found.transform(y)
        if np.abs(transformed).max() == _MAX_TRANSFORMED:
            return None
        return cls(median, unit, float(transformed.min()), float(transformed.max()))

    def transform(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets on the transformed scale.

        Parameters
        ----------
        y : ndarray of float64
            Targets.

        Returns
        -------
        ndarray of float64
        """
        with np.errstate(over="ignore"):
            transformed = np.arcsinh((y - self.median) / self.unit)
        return np.clip(transformed, -_MAX_TRANSFORMED, _MAX_TRANSFORMED)

    def inverse(self, transformed: NDArray[Any]) -> NDArray[np.float64]:
        """Targets from values on the transformed scale.

        Parameters
        ----------
        transformed : ndarray
            Values on the transformed scale.

        Returns
        -------
        ndarray of float64
        """
        inside = np.clip(np.asarray(transformed, dtype=np.float64), self.lowest, self.highest)
        return np.asarray(np.sinh(inside) * self.unit + self.median)
