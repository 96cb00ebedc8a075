"""Targets of which a few rows carry all of the squared deviation, on a scale that bends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RARE_SHARE = 1e-3
"""Share of the rows that counts as a few."""
HEAVY_SHARE = 0.5
"""Share of the squared deviation above which these few are too heavy."""


@dataclass(frozen=True)
class Tails:
    """The inverse hyperbolic sine: straight near the median, logarithmic far from it.

    Parameters
    ----------
    median, unit : float
        Where the scale is straight, and how far.
    lowest, highest : float
        Range of the fit rows on this scale. What is brought back stays inside: a small step
        beyond the largest target would otherwise be a huge one.

    Examples
    --------
    >>> tails = Tails.find(np.array([1.0, 2.0, 3.0, 4.0, 1e6]))
    >>> tails.bend(np.array([3.0, 4.0, 1e6])).round(2)
    array([ 0.  ,  0.88, 14.51])
    >>> tails.straighten(np.array([0.0, 0.88, 99.0])).round()
    array([3.e+00, 4.e+00, 1.e+06])
    """

    median: float
    unit: float
    lowest: float
    highest: float

    @classmethod
    def find(cls, y: NDArray[np.float64]) -> Tails | None:
        """The scale for a target, or None where no few rows carry most of its spread.

        One row in a thousand, and one at least, must carry over half of the squared deviation
        from the mean.

        Parameters
        ----------
        y : ndarray of float64
            Finite targets of the fit rows, such that their squares are finite too.

        Returns
        -------
        Tails or None

        Examples
        --------
        >>> Tails.find(np.array([1.0, 2.0, 3.0, 4.0]))
        """
        squares = np.square(y - y.mean())
        n_rare = -(-len(y) // round(1 / RARE_SHARE))
        rare = np.partition(squares, len(y) - n_rare)[len(y) - n_rare :]
        if len(y) < 3 or rare.sum() <= HEAVY_SHARE * squares.sum():
            return None
        median = float(np.median(y))
        distance = np.abs(y - median)
        unit = float(np.median(distance)) or float(distance.mean())
        bent = np.arcsinh((y - median) / unit)
        return cls(median, unit, float(bent.min()), float(bent.max()))

    def bend(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Targets on the bent scale.

        Parameters
        ----------
        y : ndarray of float64
            Targets.

        Returns
        -------
        ndarray of float64
        """
        return np.asarray(np.arcsinh((y - self.median) / self.unit))

    def straighten(self, bent: NDArray[Any]) -> NDArray[np.float64]:
        """Targets from values on the bent scale.

        Parameters
        ----------
        bent : ndarray
            Values on the bent scale.

        Returns
        -------
        ndarray of float64
        """
        inside = np.clip(np.asarray(bent, dtype=np.float64), self.lowest, self.highest)
        return np.asarray(np.sinh(inside) * self.unit + self.median)
