"""All features but text, written into one float32 matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.category import encode_categories
from tabnsm.columns.date import DATE_PARTS, date_parts
from tabnsm.columns.fitting import standard_codes
from tabnsm.columns.layout import Layout
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer, is_missing
from tabnsm.columns.unseen import UnseenValues, find_unseen
from tabnsm.tables.date_format import ANY_DATE, DateFormat, find_ambiguous
from tabnsm.tables.reading import ReadingNotes, read_dates, read_numbers
from tabnsm.tables.table_input import Table

STANDARDIZED_KINDS = ("numeric", "date", "category")
# Numbers go through float64 a few columns at a time, so that no second table is ever built.
_BLOCK_CELLS = 1_000_000


@dataclass(frozen=True)
class Oddities:
    """What new rows hold that the fit rows did not.

    Parameters
    ----------
    far : dict of str to int
        How many values lie far outside the fit range, by column.
    unseen : list of UnseenValues
        Category columns of which most values are not known.
    """

    far: dict[str, int] = field(default_factory=dict)
    unseen: list[UnseenValues] = field(default_factory=list)


@dataclass(frozen=True)
class DenseBlock:
    """Numbers, date parts, missing indicators and categories.

    Parameters
    ----------
    layout : Layout
        Where each feature goes.
    numeric, date, category : Standardizer
        Statistics of the features of each kind; of categories only where codes are numbers.
    clip : bool
        Whether to limit numbers to the range of the fit rows.
    embed_categories : bool
        Whether categories are codes to embed.
    """

    layout: Layout
    numeric: Standardizer
    date: Standardizer
    category: Standardizer
    clip: bool
    embed_categories: bool

    def encode(
        self, table: Table, positions: Sequence[int], notes: ReadingNotes | None = None
    ) -> tuple[NDArray[np.float32], Oddities]:
        """Encode all columns but text.

        Parameters
        ----------
        table : Table
            The rows.
        positions : sequence of int
            Where each column of the fit is in this table.
        notes : ReadingNotes, optional
            Takes what could not be read.

        Returns
        -------
        tuple
            The features, and what the rows hold that the fit rows did not.

        Shape
        -----
        features : (n_rows, n_dense)
        """
        dense = np.empty((table.n_rows, self.layout.n_dense), dtype=np.float32)
        notes = ReadingNotes() if notes is None else notes
        far = self._write_numbers(table, positions, dense, notes)
        far.update(self._write_dates(table, positions, dense, notes))
        return dense, Oddities(far, self._write_categories(table, positions, dense))

    def to_state(self) -> dict[str, Tensor]:
        """All statistics as tensors.

        Returns
        -------
        dict of str to Tensor
            One tensor per kind of column.
        """
        return {kind: getattr(self, kind).to_tensor() for kind in STANDARDIZED_KINDS}

    def _write_numbers(
        self,
        table: Table,
        positions: Sequence[int],
        dense: NDArray[np.float32],
        notes: ReadingNotes,
    ) -> dict[str, int]:
        layout, clip = self.layout, self.clip
        far: dict[str, int] = {}
        for block, matrix in number_blocks(table, layout.numeric, positions, notes):
            with_value = [k for k, spec in enumerate(block) if spec.has_value]
            targets = [layout.value_at[block[k].position] for k in with_value]
            if targets:
                values = matrix if len(targets) == len(block) else matrix[:, with_value]
                written = np.empty(values.shape, dtype=np.float32)
                counts = self.numeric.select(targets).apply(values, written, clip=clip)
                first = targets[0]
                if targets[-1] - first == len(targets) - 1:
                    dense[:, first : targets[-1] + 1] = written
                else:
                    dense[:, targets] = written
                for k in np.flatnonzero(counts):
                    far[block[with_value[k]].name] = int(counts[k])
            with_indicator = [k for k, spec in enumerate(block) if spec.has_indicator]
            if with_indicator:
                targets = [layout.indicator_at[block[k].position] for k in with_indicator]
                dense[:, targets] = is_missing(matrix[:, with_indicator], clip=clip)
        return far

    def _write_dates(
        self,
        table: Table,
        positions: Sequence[int],
        dense: NDArray[np.float32],
        notes: ReadingNotes,
    ) -> dict[str, int]:
        far: dict[str, int] = {}
        first = 0
        for spec in self.layout.dates:
            column = table.column(table.names[positions[spec.position]])
            micros, missing, unreadable = read_dates(column, spec.date_format)
            if unreadable is not None:
                notes.unreadable.append(unreadable)
            if spec.date_format is None and column.storage in ("string", "categorical"):
                ambiguous = find_ambiguous(column.to_factor().values)
                if ambiguous:
                    notes.ambiguous[spec.name] = DateFormat(ANY_DATE, ambiguous)
            n_parts = len(spec.date_parts)
            if n_parts:
                kept = [DATE_PARTS.index(part) for part in spec.date_parts]
                parts = date_parts(micros, missing, spec.date_origin)[:, kept]
                start = self.layout.value_at[spec.position]
                counts = self.date.select(slice(first, first + n_parts)).apply(
                    parts, dense[:, start : start + n_parts], clip=self.clip
                )
                if counts.any():
                    far[spec.name] = int(counts.max())
                first += n_parts
            if spec.has_indicator:
                dense[:, self.layout.indicator_at[spec.position]] = missing
        return far

    def _write_categories(
        self, table: Table, positions: Sequence[int], dense: NDArray[np.float32]
    ) -> list[UnseenValues]:
        found = []
        for k, spec in enumerate(self.layout.categories):
            column = table.column(table.names[positions[spec.position]])
            factor = column.to_factor()
            target = self.layout.value_at[spec.position]
            if self.embed_categories:
                codes = encode_categories(factor, spec.vocabulary, missing_code=spec.missing_code)
                dense[:, target] = codes
                is_unknown = codes == 0
            else:
                codes_as_numbers = standard_codes(factor, spec)[:, None]
                out = dense[:, target : target + 1]
                self.category.select([k]).apply(codes_as_numbers, out, clip=False)
                is_unknown = np.isnan(codes_as_numbers[:, 0])
            if (is_unknown & (factor.codes >= 0)).any():
                found.append(find_unseen(column, factor, spec))
        return [values for values in found if values is not None]


def number_blocks(
    table: Table,
    specs: Sequence[ColumnSpec],
    positions: Sequence[int],
    notes: ReadingNotes | None = None,
) -> Iterator[tuple[list[ColumnSpec], NDArray[np.float64]]]:
    """Number columns a few at a time as float64; those stored otherwise one by one.

    Parameters
    ----------
    table : Table
        The rows.
    specs : sequence of ColumnSpec
        Columns to read as numbers.
    positions : sequence of int
        Where each column of the fit is in this table.
    notes : ReadingNotes, optional
        Takes what could not be read.

    Yields
    ------
    tuple
        Some of the columns, and their values in all rows.
    """
    is_number = table.is_number
    plain = [spec for spec in specs if is_number[positions[spec.position]]]
    width = max(1, _BLOCK_CELLS // max(1, table.n_rows))
    for start in range(0, len(plain), width):
        block = plain[start : start + width]
        matrix = table.numbers([positions[spec.position] for spec in block])
        yield block, np.asarray(matrix, dtype=np.float64)
    for spec in specs:
        if not is_number[positions[spec.position]]:
            column = table.column(table.names[positions[spec.position]])
            values, unreadable = read_numbers(
                column, spec.number_format, from_dates=spec.from_dates
            )
            if notes is not None and unreadable is not None:
                notes.unreadable.append(unreadable)
            yield [spec], values[:, None]
