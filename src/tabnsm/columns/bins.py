"""Where the bins of a number's piecewise-linear encoding begin and how wide they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# A linear encoding is exact for two values.
_MIN_VALUES = 3
# Repeated numbers are often codes, or times: they have more bins, as far as the number of
# features allows.
_MIN_REPEATS = 4
_CODE_FACTOR = 4
_MAX_IN_ALL = 2**15


def find_bins(
    dense: NDArray[np.float32],
    rows: NDArray[np.int64] | None,
    is_number: NDArray[np.bool_],
    n_features: int,
    n_bins: int,
) -> Tensor:
    """Bins between quantiles of the fit rows, or between values where these are few.

    A feature whose values occur four times each or more on average has up to four times as many
    bins, because its values may be codes or times; in tables of more than 512 features it has
    fewer, so that a model is not mostly bins.

    Parameters
    ----------
    dense : ndarray of float32
        Encoded features but text.
    rows : ndarray of int64 or None
        Fit rows; None for all.
    is_number : ndarray of bool
        Features that are no codes of categories.
    n_features : int
        Number of features, text included.
    n_bins : int
        Maximum number of bins of a feature whose values are quantities.

    Returns
    -------
    Tensor
        Left ends and widths, float32; the ends are infinite where a feature has fewer bins.

    Shape
    -----
    dense : (n_rows, n_dense)
    is_number : (n_dense,)
    result : (n_features, 2, at most 4 n_bins)

    Examples
    --------
    >>> dense = np.array([[0.0], [1.0], [1.0], [3.0]], dtype=np.float32)
    >>> find_bins(dense, None, np.array([True]), 1, 3)
    tensor([[[0., 1.],
             [1., 2.]]])
    """
    limits = bin_limits(n_features, n_bins)
    ends_of = {}
    for k in np.flatnonzero(is_number):
        ends = bin_ends(dense[:, k] if rows is None else dense[rows, k], limits)
        if ends is not None:
            ends_of[int(k)] = ends
    return stack_bins(ends_of, n_features)


def bin_limits(n_features: int, n_bins: int) -> tuple[int, int]:
    """Maximum number of bins of a quantity and of a code."""
    return n_bins, max(min(_CODE_FACTOR * n_bins, _MAX_IN_ALL // n_features), n_bins)


def bin_ends(column: NDArray[np.float32], limits: tuple[int, int]) -> NDArray[np.float32] | None:
    """Ends of the bins of one feature by its values in the fit rows; None if it has too few."""
    values = np.sort(column)
    # The first of each run of equal values; sorted, so that no hashing is needed.
    distinct = values[np.r_[True, values[1:] != values[:-1]]]
    if len(distinct) < _MIN_VALUES:
        return None
    limit = limits[int(len(values) >= _MIN_REPEATS * len(distinct))]
    if len(distinct) <= limit + 1:
        return np.asarray(distinct)
    places = np.linspace(0, len(values) - 1, limit + 1).round().astype(np.int64)
    return np.unique(values[places])


def stack_bins(ends_of: Mapping[int, NDArray[np.float32]], n_features: int) -> Tensor:
    """Left ends and widths of the bins of all features, from the ends of those that have some."""
    width = max((len(ends) - 1 for ends in ends_of.values()), default=1)
    bins = np.empty((n_features, 2, width), dtype=np.float32)
    bins[:, 0], bins[:, 1] = np.inf, 1.0
    for k, ends in ends_of.items():
        bins[k, 0, : len(ends) - 1] = ends[:-1]
        bins[k, 1, : len(ends) - 1] = np.diff(ends)
    return torch.from_numpy(bins)
