"""What a kind of column is: how to recognise, fit, encode, name and save its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.fitting import ColumnToFit, FitScope, FittedColumn
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.text.embedding import SecondsLeft

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig


class ColumnGroup(ABC):
    """All columns of one kind; a kind is a subclass and one line in ``columns/kinds.py``.

    A subclass says how one column is recognised and fitted (`fit`), which features its columns
    have (`features`) and writes them (`write`). What it saves is a column's
    :class:`~tabnsm.columns.schema.ColumnSpec` and the statistics of standardised features.

    Parameters
    ----------
    specs : list of ColumnSpec
        Columns of this kind, in the order of the table.
    statistics : Standardizer
        Statistics of the features that are standardised, in the same order.
    config : EncoderConfig
        Options.
    """

    kind: ClassVar[str]
    """Name of the kind, as in `column_kinds`; it also names the saved statistics."""
    has_indicators: ClassVar[bool] = False
    """Whether missing values have features of their own, which follow the values of all kinds
    that have them."""
    is_dense: ClassVar[bool] = True
    """Whether every row has its own values, written by `write`."""
    checked_as: ClassVar[Literal["numbers", "strings"] | None] = None
    """What the checks for row ids and leaks look at."""

    def __init__(
        self, specs: list[ColumnSpec], statistics: Standardizer, config: EncoderConfig
    ) -> None:
        self.specs = specs
        self.statistics = statistics
        self.config = config

    @classmethod
    @abstractmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        """Fit a column, or leave it to the kinds that follow.

        Parameters
        ----------
        source : ColumnToFit
            The column.

        Returns
        -------
        FittedColumn or None
            None if it is not of this kind; never if the user asked for this kind.
        """

    @classmethod
    def fit_blocks(cls, table: MatchedTable, scope: FitScope) -> Iterator[FittedColumn]:
        """Fit columns that need no look at each, because their storage tells the kind.

        Parameters
        ----------
        table : MatchedTable
            The rows.
        scope : FitScope
            Options and rows of the fit.

        Yields
        ------
        FittedColumn
            Columns that :meth:`fit` need not see.
        """
        yield from ()

    @classmethod
    def from_fitted(cls, fitted: Iterable[FittedColumn], config: EncoderConfig) -> Self:
        """The group of the columns of this kind.

        Parameters
        ----------
        fitted : iterable of FittedColumn
            Columns of all kinds.
        config : EncoderConfig
            Options.

        Returns
        -------
        ColumnGroup
            Those of this kind.
        """
        mine = [column for column in fitted if column.spec.kind == cls.kind]
        parts = [column.standardizer for column in mine if column.standardizer is not None]
        return cls([column.spec for column in mine], Standardizer.stack(parts), config)

    def fit_together(
        self, table: MatchedTable, rows: NDArray[np.int64] | None, seconds_left: SecondsLeft | None
    ) -> tuple[TextFeatures, ...]:
        """Learn what depends on several columns, and encode what is kept per distinct value.

        Parameters
        ----------
        table : MatchedTable
            The rows.
        rows : ndarray of int64 or None
            Fit rows; None for all.
        seconds_left : callable or None
            Seconds left of a time limit.

        Returns
        -------
        tuple of TextFeatures
            Empty for kinds whose features are dense.
        """
        return ()

    @abstractmethod
    def features(self) -> list[Feature]:
        """Features of all columns but missing indicators.

        Returns
        -------
        list of Feature
            In the order of the columns.
        """

    # Not abstract: kinds that are not dense write nothing.
    def write(  # noqa: B027
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write the features of some rows.

        Parameters
        ----------
        table : MatchedTable
            The rows.
        layout : Layout
            Where each feature goes.
        dense : ndarray of float32
            Takes the features.
        notes : RowNotes
            Takes what the rows hold that the fit rows did not.
        """

    def encode_distinct(self, table: MatchedTable) -> tuple[TextFeatures, ...]:
        """Encode what is kept per distinct value.

        Parameters
        ----------
        table : MatchedTable
            The rows.

        Returns
        -------
        tuple of TextFeatures
            Empty for kinds whose features are dense.
        """
        return ()

    @classmethod
    def varies(cls, spec: ColumnSpec) -> bool:
        """Whether the features of a column differ between the fit rows.

        Parameters
        ----------
        spec : ColumnSpec
            The column.

        Returns
        -------
        bool
        """
        return spec.distinct > 1 or (
            spec.distinct == 1 and spec.missing > 0 and cls.tells_missing(spec)
        )

    @classmethod
    def tells_missing(cls, spec: ColumnSpec) -> bool:
        """Whether a feature tells missing values from present ones.

        Parameters
        ----------
        spec : ColumnSpec
            The column.

        Returns
        -------
        bool
        """
        return spec.has_indicator

    @classmethod
    @abstractmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """Number of features and a note of each column, from what is saved alone.

        Parameters
        ----------
        specs : sequence of ColumnSpec
            Columns of this kind.
        facts : mapping
            What :meth:`to_state` gave.

        Returns
        -------
        list of tuple
            One per column.
        """

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted but the specs, as tensors and JSON-able facts.

        Returns
        -------
        tuple of dict
            Tensors and facts, which share their names with no other kind's.
        """
        return {self.kind: self.statistics.to_tensor()}, {}

    @classmethod
    def from_state(
        cls,
        specs: Iterable[ColumnSpec],
        tensors: Mapping[str, Tensor],
        facts: Mapping[str, Any],
        config: EncoderConfig,
    ) -> Self:
        """Rebuild a fitted group.

        Parameters
        ----------
        specs : iterable of ColumnSpec
            Columns of all kinds.
        tensors : mapping
            Tensors of all kinds.
        facts : mapping
            Facts of all kinds.
        config : EncoderConfig
            Options.

        Returns
        -------
        ColumnGroup
            Encodes bit-equally to the saved one.
        """
        mine = [spec for spec in specs if spec.kind == cls.kind]
        return cls(mine, Standardizer.from_tensor(tensors[cls.kind]), config)
