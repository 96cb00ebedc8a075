"""Standardising numbers by the fit rows, so that no input can make an infinite feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy, stack

Floats = NDArray[np.float64]

# A value of one of n fit rows lies within sqrt(n) standard deviations: no fit row is touched.
VALUE_LIMIT = 1e6
CLIP_MARGIN = 0.1
"""Share of the fit range by which values, and predictions, may lie outside it."""
_FAR_MARGIN = 1.0
# Squares of numbers between these bounds neither overflow nor vanish in float64.
_SAFE_EXPONENT = 400


@dataclass(frozen=True)
class Standardizer:
    """Mean, spread and range of each column, found on the fit rows.

    A value x becomes ``(x * pre_scale - center) / scale``; `pre_scale` is 1 unless the numbers
    are so large or small that their squares leave float64.

    Parameters
    ----------
    pre_scale, center, scale : ndarray of float64
        Power of two, mean and standard deviation.
    low, high : ndarray of float64
        Range of the fit rows after standardising.

    Shape
    -----
    each : (n_columns,)

    Examples
    --------
    >>> standardizer = Standardizer.fit(np.array([[1.0], [3.0], [np.nan]]))
    >>> out = np.empty((3, 1), dtype=np.float32)
    >>> _ = standardizer.apply(np.array([[1.0], [3.0], [np.nan]]), out, clip=False)
    >>> out.ravel()
    array([-1.,  1.,  0.], dtype=float32)
    """

    pre_scale: Floats
    center: Floats
    scale: Floats
    low: Floats
    high: Floats

    @classmethod
    def fit(cls, matrix: Floats) -> Standardizer:
        """Measure the columns of a matrix; NaN and infinities are left out.

        Parameters
        ----------
        matrix : ndarray of float64
            Fit rows.

        Returns
        -------
        Standardizer
            Statistics of each column; an empty column gets mean 0 and spread 1.

        Shape
        -----
        matrix : (n_rows, n_columns)
        """
        present = np.isfinite(matrix)
        absent = ~present if not present.all() else None
        count = np.maximum(present.sum(axis=0), 1)
        # One copy, changed in place: a column of a large table is large.
        filled = np.where(present, matrix, 0.0)
        largest = np.maximum(filled.max(axis=0, initial=0.0), -filled.min(axis=0, initial=0.0))
        exponent = np.frexp(largest)[1]
        shift = np.where(np.abs(exponent) > _SAFE_EXPONENT, np.clip(-exponent, -1000, 1000), 0)
        pre_scale = np.ldexp(1.0, shift)
        filled *= pre_scale
        low = filled.min(axis=0, initial=np.inf, where=present)
        high = filled.max(axis=0, initial=-np.inf, where=present)
        low, high = (np.where(np.isfinite(bound), bound, 0.0) for bound in (low, high))
        # Subtracting a value of the column first keeps the digits of 1e9, 1e9 + 1, 1e9 + 2.
        filled -= low
        if absent is not None:
            filled[absent] = 0.0
        mean = filled.sum(axis=0) / count
        filled -= mean
        if absent is not None:
            filled[absent] = 0.0
        spread = np.sqrt(np.square(filled, out=filled).sum(axis=0) / count)
        center = np.clip(low + mean, low, high)
        scale = np.where(spread > 0, spread, np.where(high > low, high - low, 1.0))
        return cls(pre_scale, center, scale, (low - center) / scale, (high - center) / scale)

    @classmethod
    def stack(cls, parts: Sequence[Standardizer]) -> Standardizer:
        """Columns of several standardizers side by side.

        Parameters
        ----------
        parts : sequence of Standardizer
            In the order of their columns.

        Returns
        -------
        Standardizer
            All columns.
        """
        return cls(
            *(
                np.concatenate([np.empty(0), *(getattr(part, field.name) for part in parts)])
                for field in fields(cls)
            )
        )

    @property
    def varies(self) -> NDArray[np.bool_]:
        """For each column, whether the fit rows hold two different values."""
        return self.high > self.low

    def select(self, columns: Sequence[int] | NDArray[np.int64] | slice) -> Standardizer:
        """Some of the columns.

        Parameters
        ----------
        columns : sequence of int or slice
            Their positions.

        Returns
        -------
        Standardizer
            Only these columns.
        """
        where = columns if isinstance(columns, slice) else np.asarray(columns, dtype=np.int64)
        return Standardizer(*(getattr(self, field.name)[where] for field in fields(self)))

    def apply(self, matrix: Floats, out: NDArray[np.float32], *, clip: bool) -> NDArray[np.int64]:
        """Standardise a matrix.

        Missing values become 0, the mean. With `clip`, values are limited to the fit range
        widened by a tenth, and infinities become the ends of that range; without it, infinities
        are missing values.

        Parameters
        ----------
        matrix : ndarray of float64
            Values; not changed.
        out : ndarray of float32
            Where the result goes.
        clip : bool
            Whether to limit values to the fit range.

        Returns
        -------
        ndarray of int64
            For each column, how many values lay more than the width of the range outside it.

        Shape
        -----
        matrix, out : (n_rows, n_columns)
        """
        with np.errstate(over="ignore", invalid="ignore"):
            standard = (matrix * self.pre_scale - self.center) / self.scale
        far = np.zeros(standard.shape[1], dtype=np.int64)
        if clip:
            width = self.high - self.low
            outside = (standard < self.low - _FAR_MARGIN * width) | (
                standard > self.high + _FAR_MARGIN * width
            )
            far = np.where(width > 0, outside.sum(axis=0), 0)
            infinite = np.isinf(matrix)
            if infinite.any():
                standard = np.where(infinite, np.where(matrix > 0, self.high, self.low), standard)
            margin = CLIP_MARGIN * width
            np.clip(standard, self.low - margin, self.high + margin, out=standard)
        else:
            standard[np.isinf(matrix)] = 0.0
        np.clip(standard, -VALUE_LIMIT, VALUE_LIMIT, out=standard)
        out[...] = np.nan_to_num(standard, copy=False, nan=0.0)
        return far

    def to_tensor(self) -> Tensor:
        """All statistics as one float64 tensor.

        Returns
        -------
        Tensor
            One row per statistic.

        Shape
        -----
        (5, n_columns)
        """
        return stack([from_numpy(getattr(self, field.name).copy()) for field in fields(self)])

    @classmethod
    def from_tensor(cls, statistics: Tensor) -> Standardizer:
        """Read back :meth:`to_tensor`.

        Parameters
        ----------
        statistics : Tensor
            One row per statistic.

        Returns
        -------
        Standardizer
            The same statistics.
        """
        return cls(*(row.numpy().copy() for row in statistics))


def is_missing(matrix: Floats, *, clip: bool) -> NDArray[np.bool_]:
    """Which values count as missing: NaN, and infinities unless they are clipped.

    Parameters
    ----------
    matrix : ndarray of float64
        Values.
    clip : bool
        Whether infinities become the ends of the fit range.

    Returns
    -------
    ndarray of bool
        True where a value is missing.
    """
    return np.isnan(matrix) if clip else ~np.isfinite(matrix)
