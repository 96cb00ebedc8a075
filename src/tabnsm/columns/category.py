"""Category columns: a code per value, to embed or to standardise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.code import (
    are_place_codes,
    find_places,
    place_features,
    varying_places,
    write_places,
)
from tabnsm.columns.fitting import ColumnToFit, FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.columns.strings import are_categories, describe_strings
from tabnsm.columns.unseen import find_unseen
from tabnsm.columns.vocabulary import encode_categories, find_vocabulary

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig

# Codes of more values than this have a category per place, too: of a value with few rows, or of
# one that was never seen, its places tell what other values tell of them.
MAX_WHOLE_CODES = 500


class CategoryColumns(ColumnGroup):
    """Columns with a fixed set of values; unseen ones have code 0.

    Codes of many values, such as a VIN, have a feature for the value and one per place.

    Examples
    --------
    >>> CategoryColumns.describe([ColumnSpec(0, "city", "category")], {})
    [(1, '')]
    """

    kind = "category"
    checked_as = "strings"

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        """Fit a column of few or repeated values; see the base class."""
        if not source.is_asked and not are_categories(source):
            return None
        spec = describe_strings(source, cls.kind)
        if spec.kind == "drop":
            return FittedColumn(spec)
        factor, scope = source.column.to_factor(), source.scope
        spec = replace(
            spec,
            missing_code=spec.missing > 0,
            vocabulary=find_vocabulary(factor, scope.rows),
        )
        if _embeds(scope.config):
            places = () if source.is_asked else _places(spec, scope.config)
            return FittedColumn(replace(spec, places=places))
        codes = encode_categories(factor, spec.vocabulary, missing_code=spec.missing_code)
        return FittedColumn(spec, Standardizer.fit(scope.take(_as_numbers(codes))[:, None]))

    def features(self) -> list[Feature]:
        """One feature per column, with the number of its codes if they are embedded; places."""
        found = []
        for spec in self.specs:
            size = spec.n_codes if _embeds(self.config) else 0
            found.append(Feature(spec.name, spec.position, n_codes=size, is_derived=False))
            found += place_features(spec, spec.places)
        return found

    def write(
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write codes, standardised unless they are to be embedded."""
        for k, spec in enumerate(self.specs):
            column = table.column(spec)
            factor = column.to_factor()
            target = layout.value_at[spec.position]
            codes = encode_categories(factor, spec.vocabulary, missing_code=spec.missing_code)
            if _embeds(self.config):
                dense[:, target] = codes
                write_places(factor, spec.places, dense, target + 1)
            else:
                out = dense[:, target : target + 1]
                self.statistics.select([k]).apply(_as_numbers(codes)[:, None], out, clip=False)
            # The places of an unseen code still tell something.
            if not spec.places and ((codes == 0) & (factor.codes >= 0)).any():
                unseen = find_unseen(column, factor, spec)
                if unseen is not None:
                    notes.unseen.append(unseen)

    @classmethod
    def tells_missing(cls, spec: ColumnSpec) -> bool:
        """Whether missing values have a code of their own."""
        return spec.missing_code

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """One feature each, and one per place of codes."""
        return [(1 + len(varying_places(spec.places)), spec.note) for spec in specs]


def _embeds(config: Any) -> bool:
    return bool(config.category_encoding == "embedding")


def _places(spec: ColumnSpec, config: EncoderConfig) -> tuple[str, ...]:
    """Characters at each place, where the values are codes and many."""
    is_wanted = config.repeated_strings == "category" and len(spec.vocabulary) > MAX_WHOLE_CODES
    return find_places(spec.vocabulary) if is_wanted and are_place_codes(spec.vocabulary) else ()


def _as_numbers(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Codes as numbers, NaN for unseen values."""
    return np.where(codes == 0, np.nan, codes.astype(np.float64))
