"""Explanation: what each input column did to each prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tabnsm.attribution.display import display_matrix, numeric_matrix
from tabnsm.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

Method = Literal["integrated", "gradient"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """What each input column did to each prediction.

    An entry of `columns` is an input column that reaches the model. Text columns that are joined
    before they are embedded share one entry, named after all of them with " + " between.

    Parameters
    ----------
    predictions : ndarray of float64, shape (n_rows,)
        In the target's units.
    contributions : ndarray of float, shape (n_rows, n_columns)
        Signed attribution of each column, the sum over its features. Of the method "integrated"
        in the target's units; of "gradient" in standard deviations of the training target
        (transformed, if it is heavy-tailed and has no linear fit).
    feature_contributions : ndarray of float32, shape (n_rows, n_features)
        The same for each encoded feature.
    columns : tuple of str
        Names of the columns, in the order of the table.
    encoded_names : tuple of str
        Names of the encoded features.
    column_of_feature : ndarray of int64, shape (n_features,)
        Which of `columns` each feature belongs to.
    selected_blocks : ndarray of float32, shape (n_rows, n_blocks), or None
        The foreground: of a row's queries (each feature of each head), the share that attended
        to this block of neighbouring features at full resolution. A row adds up to the number of
        selected blocks. None without sparse attention.
    selection_block_size : int
        Features in a block; feature d lies in block ``d // selection_block_size``.
    method : {"integrated", "gradient"}, default "gradient"
        "integrated" adds up: a row's contributions are its prediction minus its base value.
    base_values : ndarray of float64, shape (n_rows,), or None
        What the contributions are added to; None for "gradient", which has no such value.
    path_errors : ndarray of float64, shape (n_rows,), or None
        By how much the gradients alone would have missed that sum, in the target's units. This
        part is shared out in proportion to the sizes of the contributions.
    column_values : tuple of ndarray
        Values of each of `columns` in the table, as numbers or as strings; None or NaN is missing.
    network_share : float, default 1.0
        Weight in the model's prediction of the networks, which are what is explained; the rest
        belongs to the other members of ``preset="best"``.

    Examples
    --------
    >>> explanation = Explanation(
    ...     predictions=np.array([1.5]),
    ...     contributions=np.array([[-0.5, 0.25]]),
    ...     feature_contributions=np.array([[-0.5, 0.5, -0.25]]),
    ...     columns=("area", "notes"),
    ...     encoded_names=("area", "text_0", "text_1"),
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
    encoded_names: tuple[str, ...]
    column_of_feature: np.ndarray
    selected_blocks: np.ndarray | None
    selection_block_size: int
    method: Method = "gradient"
    base_values: np.ndarray | None = None
    path_errors: np.ndarray | None = None
    column_values: tuple[np.ndarray, ...] = ()
    network_share: float = 1.0

    def __len__(self) -> int:
        return len(self.predictions)

    def __getitem__(self, rows: Any) -> Explanation:
        """Some of the rows, by number, slice, mask or list of numbers."""
        kept = np.atleast_1d(np.arange(len(self))[rows])
        by_row = ("predictions", "contributions", "feature_contributions")
        optional = ("selected_blocks", "base_values", "path_errors")
        names = [*by_row, *(name for name in optional if getattr(self, name) is not None)]
        parts: dict[str, Any] = {name: getattr(self, name)[kept] for name in names}
        return replace(self, **parts, column_values=tuple(v[kept] for v in self.column_values))

    @property
    def values(self) -> np.ndarray:
        """The contributions, by the name that shap has for them."""
        return self.contributions

    @property
    def feature_names(self) -> list[str]:
        """The columns, by the name that shap has for them."""
        return list(self.columns)

    @property
    def data(self) -> np.ndarray:
        """Values of the columns in the table, (n_rows, n_columns), as objects."""
        return display_matrix(self.column_values, len(self), len(self.columns))

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
        block = np.arange(len(self.encoded_names)) // self.selection_block_size
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

    def to_shap(self) -> Any:
        """The rows as a ``shap.Explanation``, for the pictures in ``shap.plots``.

        Strings become their place among the sorted strings of the column, so that pictures can
        colour them; ``display_data`` holds the strings.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        MissingExtraError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError as error:
            raise MissingExtraError("shap", "Objects of shap") from error
        base = np.full(len(self), np.nan) if self.base_values is None else self.base_values
        return shap.Explanation(
            values=np.asarray(self.contributions, dtype=np.float64),
            base_values=np.asarray(base),
            data=numeric_matrix(self.column_values, len(self), len(self.columns)),
            display_data=self.data,
            feature_names=self.feature_names,
        )

    def plot_waterfall(self, row: int = 0, *, top: int = 10, path: str | Path | None = None) -> Any:
        """Draw how the columns lead from the base value to the prediction of one row.

        Parameters
        ----------
        row : int, default 0
            Number of the row.
        top : int, default 10
            Columns with a bar of their own; the others share one.
        path : str, Path or None, default None
            File to write, such as "waterfall.png"; None writes none.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        InvalidOptionError
            If the method is "gradient", whose contributions do not add up.
        MissingExtraError
            If matplotlib is not installed.
        """
        from tabnsm.plotting_rows import plot_waterfall

        return plot_waterfall(self, row, top=top, path=path)

    def plot_beeswarm(self, *, top: int = 15, path: str | Path | None = None) -> Any:
        """Draw the contributions of the most important columns, one point per row.

        Parameters
        ----------
        top : int, default 15
            Columns to show.
        path : str, Path or None, default None
            File to write, such as "beeswarm.png"; None writes none.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from tabnsm.plotting_rows import plot_beeswarm

        return plot_beeswarm(self, top=top, path=path)


def sum_by_column(
    values: np.ndarray, column_of_feature: np.ndarray, n_columns: int, dtype: Any = None
) -> np.ndarray:
    """Add up the features of each column, in `dtype` if it is given.

    Examples
    --------
    >>> sum_by_column(np.array([[1.0, 2.0, -3.0]]), np.array([1, 0, 1]), 2)
    array([[ 2., -2.]])
    """
    order = np.argsort(column_of_feature, kind="stable")
    starts = np.searchsorted(column_of_feature[order], np.arange(n_columns))
    total: np.ndarray = np.add.reduceat(values[:, order], starts, axis=1, dtype=dtype)
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
