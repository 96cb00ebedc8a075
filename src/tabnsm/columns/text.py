"""Text columns: features of the embeddings of their distinct strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.encoded import TextFeatures
from tabnsm.columns.fitting import ColumnToFit, FittedColumn, join_notes
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.layout import Feature
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.relevance import MIN_SHARE, text_relevance
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.columns.strings import describe_strings
from tabnsm.columns.text_block import TextBlock
from tabnsm.columns.text_direction import Directions
from tabnsm.errors import InvalidOptionError, warn
from tabnsm.tables.column import Factor
from tabnsm.text.embedding import SecondsLeft, TextTooSlowError

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig


NO_SHARE = "left out: says nothing about the target that other columns do not"


class TextColumns(ColumnGroup):
    """Columns of free text, embedded joined or each by itself.

    Examples
    --------
    >>> specs = [ColumnSpec(0, "title", "text"), ColumnSpec(1, "body", "text")]
    >>> TextColumns.describe(specs, {"text": {"d_text": 64, "note": ""}})
    [(64, ''), (0, 'joined with title')]
    """

    kind = "text"
    is_dense = False
    checked_as = "strings"

    def __init__(
        self,
        specs: list[ColumnSpec],
        statistics: Standardizer,
        config: EncoderConfig,
        block: TextBlock | None = None,
    ) -> None:
        super().__init__(specs, statistics, config)
        self.block = block

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn:
        """Take any column; what embeddings become is learned from all text columns together."""
        return FittedColumn(describe_strings(source, cls.kind))

    def fit_together(
        self, table: MatchedTable, rows: NDArray[np.int64] | None, seconds_left: SecondsLeft | None
    ) -> tuple[TextFeatures, ...]:
        """Load the encoder and embed all rows; may raise TextTooSlowError.

        What is returned are embeddings, of which `project` makes features.
        """
        if not self.specs:
            return ()
        block = TextBlock.create(self.config, seconds_left)
        factors = self._factors(table)
        texts = block.fit(factors, rows, seconds_left, table.folder)
        self.block = block
        return texts

    def select(
        self,
        dense: NDArray[np.float32],
        category_sizes: Sequence[int],
        texts: tuple[TextFeatures, ...],
        target: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
    ) -> tuple[tuple[TextFeatures, ...], Directions]:
        """Leave out the columns that say nothing about the target; what the others say about it.

        Parameters are those of `text_relevance`; with too few rows to tell, all are kept.
        """
        assert self.block is not None
        found = text_relevance(dense, category_sizes, texts, self.block.narrow(), target, rows)
        if found is None:
            return texts, ()
        shares, directions = found
        # A table of nothing but text keeps all of it.
        kept = [not dense.shape[1] or share >= MIN_SHARE for share in shares]
        self.specs = list(compress(self.specs, kept))
        self.block.keep(kept)
        if not self.specs:
            self.block = None
        return tuple(compress(texts, kept)), list(compress(directions, kept))

    def encode_distinct(self, table: MatchedTable) -> tuple[TextFeatures, ...]:
        """Embed new rows."""
        if self.block is None:
            return ()
        return self.block.transform(self._factors(table), table.folder)

    def features(self) -> list[Feature]:
        """Dimensions of the joined text, or of each column."""
        d_text = 0 if self.block is None else self.block.d_text
        if isinstance(d_text, int):
            return [Feature(f"text_{k}", -1) for k in range(d_text)]
        return [
            Feature(f"{spec.name}_text_{k}", spec.position)
            for spec, width in zip(self.specs, d_text, strict=True)
            for k in range(width)
        ]

    @classmethod
    def tells_missing(cls, spec: ColumnSpec) -> bool:
        """The empty string has an embedding of its own."""
        return True

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """Features of each column; the first of joined columns shows those of all."""
        if not specs:
            return []
        d_text, note = facts["text"]["d_text"], facts["text"]["note"]
        first = specs[0].name
        if isinstance(d_text, int):
            widths, more = [d_text, *[0] * (len(specs) - 1)], f"joined with {first}"
        else:
            widths, more = d_text, ""
        notes = [note, *[more] * (len(specs) - 1)]
        return [
            (width, join_notes(spec.note, added))
            for spec, width, added in zip(specs, widths, notes, strict=True)
        ]

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Projection and identity of the encoder; see the base class."""
        if self.block is None:
            return {}, {"text": None}
        tensors, facts = self.block.to_state()
        return {f"text.{name}": tensor for name, tensor in tensors.items()}, {"text": facts}

    @classmethod
    def from_state(
        cls,
        specs: Iterable[ColumnSpec],
        tensors: Mapping[str, Tensor],
        facts: Mapping[str, Any],
        config: EncoderConfig,
    ) -> Self:
        """Rebuild a fitted group; that its text model is there is checked here."""
        block = None
        if facts["text"] is not None:
            mine = {
                name.removeprefix("text."): tensor
                for name, tensor in tensors.items()
                if name.startswith("text.")
            }
            block = TextBlock.from_state(mine, facts["text"], config)
        texts = [spec for spec in specs if spec.kind == cls.kind]
        return cls(texts, Standardizer.stack([]), config, block)

    def _factors(self, table: MatchedTable) -> Iterator[Factor]:
        return (table.column(spec).to_factor() for spec in self.specs)


def leave_out_text(
    specs: Sequence[ColumnSpec], error: TextTooSlowError, config: EncoderConfig
) -> list[ColumnSpec]:
    """Drop the text columns, for which there is no time, with a warning.

    Raises `InvalidOptionError` if there are no other columns.
    """
    names = ", ".join(repr(spec.name) for spec in specs if spec.kind == TextColumns.kind)
    found = (
        f"{error.work} would take about {error.seconds:.0f} s, which is over half of the "
        f"{error.seconds_left:.1f} s left of time_limit"
    )
    longer = 2 * error.seconds - error.seconds_left
    remedy = f"Raise time_limit by about {longer:.0f} s"
    if error.n_done and config.text_cache:
        remedy += f"; the {error.n_done:,} texts embedded so far are in the cache"
    if all(spec.kind in ("drop", TextColumns.kind) for spec in specs):
        raise InvalidOptionError(
            "time_limit must be long enough for the text of a table without other columns. "
            f"{found}. {remedy}."
        ) from error
    warn(f"{found}. The text columns {names} are left out of this fit. {remedy}.")
    note = "left out: embedding its text takes longer than half of time_limit"
    return [
        replace(spec, kind="drop", note=note) if spec.kind == TextColumns.kind else spec
        for spec in specs
    ]
