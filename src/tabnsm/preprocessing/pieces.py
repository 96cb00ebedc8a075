"""Where the straight pieces of a number's token begin and how wide they are."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# A straight line does for two values.
_MIN_VALUES = 3
_ROWS_PER_PIECE, _MOST_IN_ALL, _FEW = 64, 2**15, 16


def limited_pieces(n_pieces: int, n_rows: int, n_features: int) -> int:
    """Pieces of a feature: 64 rows for each, and no model that is mostly pieces.

    Parameters
    ----------
    n_pieces : int
        Most pieces of a feature.
    n_rows, n_features : int
        Fit rows, and features of the table.

    Returns
    -------
    int
        `n_pieces`, or fewer where rows are few or features more than 512; but 16 is never too
        many.

    Examples
    --------
    >>> [limited_pieces(64, rows, 10) for rows in (100, 2000, 5000)]
    [16, 31, 64]
    >>> [limited_pieces(64, 10_000, width) for width in (512, 1024, 16384)]
    [64, 32, 16]
    """
    return min(n_pieces, max(min(n_rows // _ROWS_PER_PIECE, _MOST_IN_ALL // n_features), _FEW))


def find_pieces(
    dense: NDArray[np.float32],
    rows: NDArray[np.int64] | None,
    is_number: NDArray[np.bool_],
    n_features: int,
    n_pieces: int,
) -> Tensor:
    """Pieces between quantiles of the fit rows, or between values where these are few.

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
    n_pieces : int
        Most pieces of a feature.

    Returns
    -------
    Tensor
        Left ends and widths, float32; the ends are infinite where a feature has fewer pieces.

    Shape
    -----
    dense : (n_rows, n_dense)
    is_number : (n_dense,)
    result : (n_features, 2, n_pieces)

    Examples
    --------
    >>> dense = np.array([[0.0], [1.0], [1.0], [3.0]], dtype=np.float32)
    >>> find_pieces(dense, None, np.array([True]), 1, 3)
    tensor([[[0., 1., inf],
             [1., 2., 1.]]])
    """
    pieces = np.empty((n_features, 2, n_pieces), dtype=np.float32)
    pieces[:, 0], pieces[:, 1] = np.inf, 1.0
    for k in np.flatnonzero(is_number):
        values = np.sort(dense[:, k] if rows is None else dense[rows, k])
        # The first of each run of equal values; sorted, so that no hashing is needed.
        distinct = values[np.r_[True, values[1:] != values[:-1]]]
        if len(distinct) < _MIN_VALUES:
            continue
        ends = distinct
        if len(distinct) > n_pieces + 1:
            places = np.linspace(0, len(values) - 1, n_pieces + 1).round().astype(np.int64)
            ends = np.unique(values[places])
        pieces[k, 0, : len(ends) - 1] = ends[:-1]
        pieces[k, 1, : len(ends) - 1] = np.diff(ends)
    return torch.from_numpy(pieces)
