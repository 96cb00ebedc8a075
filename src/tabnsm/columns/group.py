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

    A subclass says how one column is recognised and fitted (`fit`), which features its columns have
    (`features`) and writes them (`write`). What it saves is a column's
    :class:`~tabnsm.columns.schema.ColumnSpec` and the statistics of standardised features. Columns
    and the statistics of their standardised features are in the order of the table.
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
        """Fit a column; None leaves it to the kinds that follow, unless this kind was asked for."""

    @classmethod
    def fit_blocks(cls, table: MatchedTable, scope: FitScope) -> Iterator[FittedColumn]:
        """Fit columns that need no look at each, because their storage tells the kind."""
        yield from ()

    @classmethod
    def from_fitted(cls, fitted: Iterable[FittedColumn], config: EncoderConfig) -> Self:
        """The group of the columns of this kind."""
        mine = [column for column in fitted if column.spec.kind == cls.kind]
        parts = [column.standardizer for column in mine if column.standardizer is not None]
        return cls([column.spec for column in mine], Standardizer.stack(parts), config)

    def fit_together(
        self, table: MatchedTable, rows: NDArray[np.int64] | None, seconds_left: SecondsLeft | None
    ) -> tuple[TextFeatures, ...]:
        """Learn what depends on several columns, and encode what is kept per distinct value."""
        return ()

    @abstractmethod
    def features(self) -> list[Feature]:
        """Features of all columns but missing indicators."""

    # Not abstract: kinds that are not dense write nothing.
    def write(  # noqa: B027
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write the features of some rows.

        `notes` takes what the rows hold that the fit rows did not.
        """

    def encode_distinct(self, table: MatchedTable) -> tuple[TextFeatures, ...]:
        """Encode what is kept per distinct value."""
        return ()

    @classmethod
    def varies(cls, spec: ColumnSpec) -> bool:
        """Whether the features of a column differ between the fit rows."""
        return spec.distinct > 1 or (
            spec.distinct == 1 and spec.missing > 0 and cls.tells_missing(spec)
        )

    @classmethod
    def tells_missing(cls, spec: ColumnSpec) -> bool:
        """Whether a feature tells missing values from present ones."""
        return spec.has_indicator

    @classmethod
    @abstractmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """Number of features and a note of each column, from what is saved alone.

        `facts` is what :meth:`to_state` gave.
        """

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything fitted but the specs, as tensors and JSON-able facts.

        Their names are shared with no other kind's.
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

        From columns, tensors and facts of all kinds; it encodes bit-equally to the saved one.
        """
        mine = [spec for spec in specs if spec.kind == cls.kind]
        return cls(mine, Standardizer.from_tensor(tensors[cls.kind]), config)
