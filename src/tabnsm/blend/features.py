"""TreeFeatures: from encoded rows to the columns that trees split by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable

MAX_CODES = 255
"""Most codes of a category that trees split by as such, scikit-learn's limit."""
_N_FOLDS = 5
_PRIOR_ROWS = 10.0  # rows that the overall mean counts for in the mean of a category


@dataclass(frozen=True, eq=False)
class TreeFeatures:
    """Codes of categories, their target statistics, and numbers.

    The columns are: codes of categories with few values, NaN for values that no training row has;
    the mean target and the number of training rows of every category; all other features as
    they are encoded.

    Parameters
    ----------
    category_sizes : tuple of int
        Of the encoded features, 0 for a number.
    codes : tuple of ndarray of float32
        For each category with few values, what stands for each of its codes: 0, 1, 2, ... or NaN.
    means, counts : tuple of ndarray of float32
        For each category, of the training rows with a code.

    Examples
    --------
    >>> table = EncodedTable(torch.tensor([[0.5, 1.0], [1.5, 1.0], [2.5, 2.0]]))
    >>> features, x = TreeFeatures.fit(table, np.array([1.0, 1.0, 4.0]), None, (0, 3), seed=0)
    >>> x.shape, features.n_categories
    ((3, 4), 1)
    >>> features.transform(EncodedTable(torch.tensor([[9.0, 0.0]])))
    array([[nan,  2.,  0.,  9.]], dtype=float32)
    """

    category_sizes: tuple[int, ...]
    codes: tuple[NDArray[np.float32], ...]
    means: tuple[NDArray[np.float32], ...]
    counts: tuple[NDArray[np.float32], ...]

    @classmethod
    def fit(
        cls,
        table: EncodedTable,
        target: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        category_sizes: Sequence[int],
        seed: int,
    ) -> tuple[TreeFeatures, NDArray[np.float32]]:
        """Measure the categories, and the columns of the training rows.

        A training row's own target is not in its target statistics: they are those of the other
        four fifths of the rows.

        Parameters
        ----------
        table : EncodedTable
            Training rows.
        target : ndarray of float64, shape (n,)
        weight : ndarray of float64, shape (n,), or None
        category_sizes : sequence of int
        seed : int

        Returns
        -------
        tuple of TreeFeatures and ndarray of float32
        """
        weight = np.ones(len(target)) if weight is None else weight
        dense = table.dense.numpy()
        fold = np.random.default_rng(seed).permutation(len(target)) % _N_FOLDS
        codes, means, counts, out_of_fold = [], [], [], []
        for k, size in enumerate(category_sizes):
            if not size:
                continue
            code = dense[:, k].astype(np.int64)
            if size <= MAX_CODES + 1:
                codes.append(_dense_codes(code, size))
            means.append(_means(code, target, weight, size))
            counts.append(np.bincount(code, minlength=size).astype(np.float32))
            own = np.empty(len(code), dtype=np.float32)
            for k_fold in range(_N_FOLDS):
                rest, here = fold != k_fold, fold == k_fold
                if rest.any():
                    own[here] = _means(code[rest], target[rest], weight[rest], size)[code[here]]
            out_of_fold.append(own)
        features = cls(tuple(category_sizes), tuple(codes), tuple(means), tuple(counts))
        x = features.transform(table)
        for k, own in enumerate(out_of_fold):
            x[:, features.n_categories + 2 * k] = own
        return features, x

    @property
    def n_categories(self) -> int:
        """Columns that hold codes; they come first."""
        return len(self.codes)

    def transform(self, table: EncodedTable) -> NDArray[np.float32]:
        """Columns of new rows.

        Parameters
        ----------
        table : EncodedTable

        Returns
        -------
        ndarray of float32, shape (n, D')
        """
        gathered = table.gather(torch.arange(table.n_rows)).numpy()  # (n, D)
        is_category = np.array(self.category_sizes, dtype=np.int64) > 0
        code = gathered[:, is_category].astype(np.int64)
        few = [size <= MAX_CODES + 1 for size in self.category_sizes if size]
        columns = [
            values[code[:, k]] for k, values in zip(np.flatnonzero(few), self.codes, strict=True)
        ]
        for k, (mean, count) in enumerate(zip(self.means, self.counts, strict=True)):
            columns += [mean[code[:, k]], count[code[:, k]]]
        x = np.empty((len(gathered), len(columns) + int((~is_category).sum())), dtype=np.float32)
        for k, column in enumerate(columns):
            x[:, k] = column
        x[:, len(columns) :] = gathered[:, ~is_category]
        return x

    def to_state(self) -> dict[str, Tensor]:
        """Tensors; the categories' values one after the other."""
        parts = {"codes": self.codes, "means": self.means, "counts": self.counts}
        return {
            name: torch.from_numpy(np.concatenate(values))
            for name, values in parts.items()
            if values
        }

    @classmethod
    def from_state(
        cls, tensors: Mapping[str, Tensor], category_sizes: Sequence[int]
    ) -> TreeFeatures:
        """Read back :meth:`to_state`; `category_sizes` are those of the encoder."""
        sizes = [size for size in category_sizes if size]
        few = [size for size in sizes if size <= MAX_CODES + 1]

        def cut(name: str, lengths: list[int]) -> tuple[Any, ...]:
            if not lengths:
                return ()
            values = tensors[name].numpy()
            if len(values) != sum(lengths):
                raise ValueError(f"{name} must have {sum(lengths)} values, got {len(values)}")
            return tuple(np.split(values, np.cumsum(lengths)[:-1]))

        return cls(
            tuple(category_sizes), cut("codes", few), cut("means", sizes), cut("counts", sizes)
        )


def _dense_codes(code: NDArray[np.int64], size: int) -> NDArray[np.float32]:
    """0, 1, 2, ... for the codes that occur, NaN for the others."""
    values = np.full(size, np.nan, dtype=np.float32)
    seen = np.unique(code)
    values[seen] = np.arange(len(seen))
    return values


def _means(
    code: NDArray[np.int64], target: NDArray[np.float64], weight: NDArray[np.float64], size: int
) -> NDArray[np.float32]:
    """Mean target of each code, drawn to that of all rows where rows are few."""
    scale = 1.0 / weight.mean()
    overall = np.average(target, weights=weight)
    total = np.bincount(code, weight * scale * (target - overall), minlength=size)
    rows = np.bincount(code, weight * scale, minlength=size)
    means = overall + total / (rows + _PRIOR_ROWS)
    return means.astype(np.float32)
