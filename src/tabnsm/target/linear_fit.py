"""LinearFit: what a linear fit explains of a target; networks learn its residual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import EncodedTable
from tabnsm.target.scaler import TargetScaler

# LSQR on columns of about equal size; damping holds back what columns that say the same share.
_MAX_STEPS = 200
_DAMPING = 1e-3
_TOLERANCE = 1e-6  # of float32 products
# Most targets are far from linear, and that shows soon.
_FIRST_STEPS = 30
_MAX_FIRST_RESIDUAL = 0.5
_TILE_ROWS = 1024


@dataclass(frozen=True)
class LinearFit:
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
        From the sum of these to the units of the target; its mean is what all rows have.

    Shape
    -----
    slope : (D,)
    code_value : (sum of category_sizes,)

    Examples
    --------
    >>> table = EncodedTable(torch.tensor([[-1.0], [0.0], [1.0]]))
    >>> LinearFit.fit(table, np.array([1.0, 3.0, 5.0]), None, [0]).predict(table).round(3)
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
        ignored: Sequence[int] = (),
    ) -> LinearFit | None:
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
        ignored : sequence of int
            Features that have no part in it.

        Returns
        -------
        LinearFit or None
            None where the first steps show that it leaves most of the target.
        """
        from scipy.sparse.linalg import LinearOperator, lsqr

        scaler = TargetScaler.fit(target, weight)
        root = np.ones(len(target)) if weight is None else np.sqrt(weight / weight.max())
        matrix = _FeatureMatrix(table, category_sizes, ignored)
        operator = LinearOperator(
            (table.n_rows, len(matrix.size)),
            matvec=lambda values: root * matrix.times(values / matrix.size),
            rmatvec=lambda rows: matrix.transposed_times(root * rows) / matrix.size,
            dtype=np.float64,
        )
        standard = root * scaler.transform(target)
        limits = {"damp": _DAMPING, "atol": _TOLERANCE, "btol": _TOLERANCE}
        _, _, _, residual, *_ = lsqr(operator, standard, iter_lim=_FIRST_STEPS, **limits)
        if residual > _MAX_FIRST_RESIDUAL * np.linalg.norm(standard):
            return None
        solution = lsqr(operator, standard, iter_lim=_MAX_STEPS, **limits)[0]
        values = torch.from_numpy(solution / matrix.size)
        slope, code_value, intercept = torch.split(values, matrix.widths)
        mean = scaler.mean + scaler.scale * float(intercept)
        return cls(slope, code_value, tuple(category_sizes), replace(scaler, mean=mean))

    def predict(self, table: EncodedTable) -> NDArray[np.float64]:
        """The linear fit of every row; it does not depend on the other rows.

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
        """What each feature adds to the linear fit, in standard deviations of the target.

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

    def extended(
        self,
        category_sizes: Sequence[int],
        place_of: NDArray[np.int64],
        code_of: Mapping[int, NDArray[np.int64]],
    ) -> LinearFit:
        """The same fit for a table with further features and codes, which add nothing to it.

        Parameters
        ----------
        category_sizes : sequence of int
            Of the further table.
        place_of : ndarray of int64
            Of each feature among those of the further table.
        code_of : mapping of int to ndarray of int64
            By feature, the new code of each of its codes; others are as good as never seen.

        Returns
        -------
        LinearFit
        """
        slope = self.slope.new_zeros(len(category_sizes))
        slope[torch.from_numpy(place_of)] = self.slope
        first = {feature: offset for feature, offset, _ in _categories(category_sizes)}
        value = self.code_value.new_zeros(sum(category_sizes))
        for feature, offset, size in _categories(self.category_sizes):
            begin = first[int(place_of[feature])]
            value[begin : begin + category_sizes[int(place_of[feature])]] = self.code_value[offset]
            codes = begin + torch.from_numpy(code_of[feature])
            value[codes] = self.code_value[offset : offset + size]
        return LinearFit(slope, value, tuple(category_sizes), self.scaler)

    def share_of(self, residual: TargetScaler) -> float:
        """Standard deviation of the residual, in standard deviations of the target.

        Parameters
        ----------
        residual : TargetScaler
            Of what this fit leaves; a transformed one counts by its slope at the median.

        Returns
        -------
        float
        """
        whole = self.scaler
        share = (residual.scale / whole.scale) * (whole.pre_scale / residual.pre_scale)
        return share if residual.asinh is None else share * residual.asinh.unit


def _categories(category_sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Feature, first place among all codes, and number of codes of each category."""
    ends = np.cumsum(category_sizes)
    return [(k, int(ends[k]) - size, size) for k, size in enumerate(category_sizes) if size]


def _codes(column: Tensor, size: int) -> Tensor:
    return column.long().clamp(0, size - 1)


class _FeatureMatrix:
    """Encoded features, a 0/1 column per code, and a column of ones: products with that matrix.

    `size` has about the length of each column, and at least 1.
    """

    def __init__(
        self, table: EncodedTable, category_sizes: Sequence[int], ignored: Sequence[int]
    ) -> None:
        self.table = table
        self.ignored = list(ignored)
        n_codes = sum(category_sizes)
        self.widths = [table.n_features, n_codes, 1]
        texts = [text.values.shape[1] for text in table.texts]
        self.parts = [table.dense.shape[1], *texts, n_codes, 1]
        self.codes = [
            (feature, _codes(table.dense[:, feature], size) + offset)
            for feature, offset, size in _categories(category_sizes)
        ]
        sizes = [torch.linalg.vector_norm(table.dense, dim=0)]
        for text in table.texts:
            repeated = (table.n_rows / len(text.values)) ** 0.5
            sizes.append(torch.linalg.vector_norm(text.values, dim=0) * repeated)
        counts = torch.zeros(n_codes)
        for _, places in self.codes:
            counts.index_add_(0, places, torch.ones(table.n_rows))
        sizes += [counts.sqrt(), torch.tensor([table.n_rows**0.5])]
        self.size = _as_float64(torch.cat(sizes)).clip(min=1.0)

    def times(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = torch.split(torch.from_numpy(values).float(), self.parts)
        dense, *texts, codes, constant = parts
        rows = self.table.dense @ dense + constant  # codes meet a slope of 0
        for text, part in zip(self.table.texts, texts, strict=True):
            rows += (text.values @ part)[text.index]
        for _, places in self.codes:
            rows += codes[places]
        return _as_float64(rows)

    def transposed_times(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        by_row = torch.from_numpy(rows).float()
        dense = by_row @ self.table.dense
        dense[self.ignored] = 0.0  # then their slopes stay 0
        codes = by_row.new_zeros(self.widths[1])
        for feature, places in self.codes:
            codes.index_add_(0, places, by_row)
            dense[feature] = 0.0
        parts = [dense]
        for text in self.table.texts:
            by_text = by_row.new_zeros(len(text.values)).index_add(0, text.index, by_row)
            parts.append(by_text @ text.values)
        return _as_float64(torch.cat([*parts, codes, by_row.sum().unsqueeze(0)]))


def _as_float64(values: Tensor) -> NDArray[np.float64]:
    return np.asarray(values.numpy(), dtype=np.float64)
