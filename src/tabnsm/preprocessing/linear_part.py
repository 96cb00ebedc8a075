"""What a straight fit explains of a target, taken off before a network learns the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.target import TargetScaler

# LSQR on columns of equal size: damping holds back what columns that say the same would share.
_MOST_STEPS = 200
_DAMPING = 1e-3
_TILE_ROWS = 1024


@dataclass(frozen=True)
class LinearPart:
    """A number per feature and per code of a category, fitted to all rows at once.

    Parameters
    ----------
    slope : Tensor
        Of each feature, float64; 0 for categories.
    code_value : Tensor
        Of each code of all categories, one category after the other, float64.
    category_sizes : tuple of int
        Number of codes of each feature, 0 for a number.
    scaler : TargetScaler
        From the sum of these to the units of the target.

    Shape
    -----
    slope : (D,)
    code_value : (sum of category_sizes,)

    Examples
    --------
    >>> table = EncodedTable(torch.tensor([[-1.0], [0.0], [1.0]]))
    >>> LinearPart.fit(table, np.array([1.0, 3.0, 5.0]), None, [0]).predict(table).round(3)
    array([1., 3., 5.])
    """

    slope: Tensor
    code_value: Tensor
    category_sizes: tuple[int, ...]
    scaler: TargetScaler

    @classmethod
    def fit(
        cls,
        table: EncodedTable,
        target: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        category_sizes: Sequence[int],
    ) -> LinearPart:
        """Least squares on the encoded features, without a copy of them.

        Parameters
        ----------
        table : EncodedTable
            Rows to fit.
        target : ndarray of float64
            Their targets.
        weight : ndarray of float64 or None
            Their weights.
        category_sizes : sequence of int
            Number of codes of each feature, 0 for a number.

        Returns
        -------
        LinearPart
            The straight fit.
        """
        from scipy.sparse.linalg import LinearOperator, lsqr

        scaler = TargetScaler.fit(target, weight)
        root = np.ones(len(target)) if weight is None else np.sqrt(weight / weight.max())
        matrix = _FeatureMatrix(table, category_sizes)
        # A column of zeros, and one that is nearly, is left as it is.
        size = np.sqrt(matrix.transposed_times(np.square(root), squared=True)).clip(min=1.0)
        operator = LinearOperator(
            (table.n_rows, len(size)),
            matvec=lambda values: root * matrix.times(values / size),
            rmatvec=lambda rows: matrix.transposed_times(root * rows) / size,
            dtype=np.float64,
        )
        standard = scaler.transform(target).astype(np.float64)
        solution = lsqr(
            operator, root * standard, damp=_DAMPING, atol=1e-8, btol=1e-8, iter_lim=_MOST_STEPS
        )[0]
        slope, code_value = torch.split(torch.from_numpy(solution / size), matrix.widths)
        return cls(slope, code_value, tuple(category_sizes), scaler)

    def predict(self, table: EncodedTable) -> NDArray[np.float64]:
        """The straight fit of every row; it does not depend on the other rows.

        Parameters
        ----------
        table : EncodedTable
            The rows.

        Returns
        -------
        ndarray of float64
            In the units of the target.
        """
        standard = np.empty(table.n_rows)
        for start in range(0, table.n_rows, _TILE_ROWS):
            stop = min(start + _TILE_ROWS, table.n_rows)
            parts = self.contributions(table.gather(torch.arange(start, stop)))
            standard[start:stop] = parts.sum(dim=1).numpy()
        return self.scaler.inverse(standard)

    def contributions(self, x: Tensor) -> Tensor:
        """What each feature adds to the straight fit, in standard deviations of the target.

        Parameters
        ----------
        x : Tensor
            Encoded rows, (B, D).

        Returns
        -------
        Tensor
            Float64, (B, D).
        """
        parts = x.double() * self.slope
        for feature, offset, size in _categories(self.category_sizes):
            parts[:, feature] = self.code_value[_codes(x[:, feature], size) + offset]
        return parts


def _categories(category_sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Feature, first place among all codes, and number of codes of each category."""
    ends = np.cumsum(category_sizes)
    return [(k, int(ends[k]) - size, size) for k, size in enumerate(category_sizes) if size]


def _codes(column: Tensor, size: int) -> Tensor:
    return column.long().clamp(0, size - 1)


class _FeatureMatrix:
    """The encoded features and a 0/1 column per code as one matrix, of which products are made."""

    def __init__(self, table: EncodedTable, category_sizes: Sequence[int]) -> None:
        self.table = table
        self.categories = _categories(category_sizes)
        self.widths = [table.n_features, sum(category_sizes)]
        texts = [text.values.shape[1] for text in table.texts]
        self.parts = [table.dense.shape[1], *texts, self.widths[1]]

    def times(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        dense, *texts, codes = torch.split(torch.from_numpy(values).float(), self.parts)
        rows = self.table.dense @ dense  # codes meet a slope of 0
        for text, part in zip(self.table.texts, texts, strict=True):
            rows += (text.values @ part)[text.index]
        for feature, offset, size in self.categories:
            rows += codes[_codes(self.table.dense[:, feature], size) + offset]
        return _as_float64(rows)

    def transposed_times(
        self, rows: NDArray[np.float64], *, squared: bool = False
    ) -> NDArray[np.float64]:
        """Products of the columns, or of their squares, with a number per row."""
        by_row = torch.from_numpy(rows).float()
        dense = by_row @ (self.table.dense.square() if squared else self.table.dense)
        codes = by_row.new_zeros(self.widths[1])
        for feature, offset, size in self.categories:
            codes.index_add_(0, _codes(self.table.dense[:, feature], size) + offset, by_row)
            dense[feature] = 0.0
        parts = [dense]
        for text in self.table.texts:
            by_text = by_row.new_zeros(len(text.values)).index_add(0, text.index, by_row)
            parts.append(by_text @ (text.values.square() if squared else text.values))
        return _as_float64(torch.cat([*parts, codes]))


def _as_float64(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values.numpy(), dtype=np.float64)
