"""Explanation: what each input column did to each prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tabnsm.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each input column did to each prediction.

    An entry of `columns` is an input column that reaches the model. Text columns that are joined
    before they are embedded share one entry, named after all of them with " + " between.

    Parameters
    ----------
    predictions : ndarray of float64, shape (n_rows,)
        In the target's units.
    contributions : ndarray of float32, shape (n_rows, n_columns)
        Signed attribution of each column, in standard deviations of the training target
        (transformed, if it is heavy-tailed and has no linear fit); the sum over its features.
    feature_contributions : ndarray of float32, shape (n_rows, n_features)
        The same for each encoded feature.
    columns : tuple of str
        Names of the columns, in the order of the table.
    feature_names : tuple of str
        Names of the encoded features.
    column_of_feature : ndarray of int64, shape (n_features,)
        Which of `columns` each feature belongs to.
    selected_blocks : ndarray of float32, shape (n_rows, n_blocks), or None
        The foreground: of a row's queries (each feature of each head), the share that attended
        to this block of neighbouring features at full resolution. A row adds up to the number of
        selected blocks. None without sparse attention.
    selection_block_size : int
        Features in a block; feature d lies in block ``d // selection_block_size``.

    Examples
    --------
    >>> explanation = Explanation(
    ...     predictions=np.array([1.5]),
    ...     contributions=np.array([[-0.5, 0.25]]),
    ...     feature_contributions=np.array([[-0.5, 0.5, -0.25]]),
    ...     columns=("area", "notes"),
    ...     feature_names=("area", "text_0", "text_1"),
    ...     column_of_feature=np.array([0, 1, 1]),
    ...     selected_blocks=np.array([[0.75, 0.25]]),
    ...     selection_block_size=2,
    ... )
    >>> explanation.attributions
    array([[1. , 0.5]])
    >>> explanation.foreground
    array([[0.75, 0.5 ]])
    """

    predictions: np.ndarray
    contributions: np.ndarray
    feature_contributions: np.ndarray
    columns: tuple[str, ...]
    feature_names: tuple[str, ...]
    column_of_feature: np.ndarray
    selected_blocks: np.ndarray | None
    selection_block_size: int

    @property
    def attributions(self) -> np.ndarray:
        """Size of the contributions, (n_rows, n_columns); a row's strongest column has 1."""
        return normalize_rows(self.contributions)

    @property
    def feature_attributions(self) -> np.ndarray:
        """The same for the encoded features, (n_rows, n_features)."""
        return normalize_rows(self.feature_contributions)

    @property
    def importance(self) -> np.ndarray:
        """Mean share of each column in the attribution of a row, (n_columns,); adds up to 1.

        Zeros if there are no rows.
        """
        size = np.abs(self.contributions, dtype=np.float64)
        total = size.sum(axis=1, keepdims=True)
        shares = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
        return np.asarray(shares.mean(axis=0)) if len(shares) else np.zeros(len(self.columns))

    @property
    def foreground(self) -> np.ndarray | None:
        """How much of a row's foreground a column is, (n_rows, n_columns), or None.

        The share of a row's queries that selected the block of the column's feature; the mean
        over its features if it has several.
        """
        if self.selected_blocks is None:
            return None
        block = np.arange(len(self.feature_names)) // self.selection_block_size
        by_feature = self.selected_blocks[:, block]  # (n_rows, n_features)
        count = np.bincount(self.column_of_feature, minlength=len(self.columns))
        total = sum_by_column(by_feature, self.column_of_feature, len(self.columns))
        return np.asarray(total / count)

    def to_frame(self) -> pd.DataFrame:
        """The attributions as a DataFrame: one line per row, one column per input column.

        Returns
        -------
        pandas.DataFrame
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("demo", "DataFrames") from error
        return pd.DataFrame(self.attributions, columns=list(self.columns))


def sum_by_column(values: np.ndarray, column_of_feature: np.ndarray, n_columns: int) -> np.ndarray:
    """Add up the features of each column.

    Examples
    --------
    >>> sum_by_column(np.array([[1.0, 2.0, -3.0]]), np.array([1, 0, 1]), 2)
    array([[ 2., -2.]])
    """
    order = np.argsort(column_of_feature, kind="stable")
    starts = np.searchsorted(column_of_feature[order], np.arange(n_columns))
    total: np.ndarray = np.add.reduceat(values[:, order], starts, axis=1)
    return total


def normalize_rows(values: np.ndarray) -> np.ndarray:
    """Absolute values over the largest of their row; a row of zeros stays one.

    Examples
    --------
    >>> normalize_rows(np.array([[1.0, -2.0], [0.0, 0.0]]))
    array([[0.5, 1. ],
           [0. , 0. ]])
    """
    size: np.ndarray = np.abs(values)
    largest = size.max(axis=1, keepdims=True)
    normalized: np.ndarray = np.divide(size, largest, out=np.zeros_like(size), where=largest > 0)
    return normalized
