"""Code columns: strings of one length, such as a VIN, with a category per place."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns.fitting import ColumnToFit, FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.layout import Feature, Layout
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.notes import RowNotes
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer
from tabnsm.columns.strings import describe_strings
from tabnsm.tables.stored import parts_of

if TYPE_CHECKING:
    from tabnsm.columns.config import EncoderConfig
    from tabnsm.tables.column import Factor

MIN_LENGTH, MAX_LENGTH = 3, 24
# Shares of the distinct strings: of the usual length, and with a digit.
MIN_SAME_LENGTH, MIN_WITH_DIGIT = 0.95, 0.9


class CodeColumns(ColumnGroup):
    """Strings of one length without spaces: each place is a category of its characters.

    A model year, a maker or a region has its place in such a code; an encoder of language sees
    noise, and a category of the whole has too few rows. The vocabulary of a column has one string
    per place, the characters there; a character never seen, and a missing string, have code 0.

    Examples
    --------
    >>> spec = ColumnSpec(0, "vin", "code", vocabulary=("5", "YZ", "012"))
    >>> CodeColumns.describe([spec], {})
    [(2, '')]
    """

    kind = "code"
    checked_as = "strings"

    @classmethod
    def fit(cls, source: ColumnToFit) -> FittedColumn | None:
        """Fit a column of codes; see the base class."""
        config = source.scope.config
        values, _ = source.used
        # NOTE[DIFF]: the paper takes all strings but those of few values for text.
        is_wanted = config.repeated_strings == "category" and are_place_codes(values)
        if not (source.is_asked or is_wanted):
            return None
        spec = describe_strings(source, cls.kind)
        if spec.kind == "drop":
            return FittedColumn(spec)
        return FittedColumn(replace(spec, vocabulary=find_places(values)))

    def features(self) -> list[Feature]:
        """A category per place whose characters differ."""
        return [feature for spec in self.specs for feature in place_features(spec, spec.vocabulary)]

    def write(
        self, table: MatchedTable, layout: Layout, dense: NDArray[np.float32], notes: RowNotes
    ) -> None:
        """Write the codes of the characters."""
        for spec in self.specs:
            factor = table.column(spec).to_factor()
            first = layout.value_at.get(spec.position, 0)
            write_places(factor, spec.vocabulary, dense, first)

    @classmethod
    def describe(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any]
    ) -> list[tuple[int, str]]:
        """As many features as places that vary."""
        return [(len(varying_places(spec.vocabulary)), spec.note) for spec in specs]

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Nothing beside the specs."""
        return {}, {}

    @classmethod
    def from_state(
        cls,
        specs: Iterable[ColumnSpec],
        tensors: Mapping[str, Tensor],
        facts: Mapping[str, Any],
        config: EncoderConfig,
    ) -> Self:
        """Rebuild a fitted group from the specs alone."""
        mine = [spec for spec in specs if spec.kind == cls.kind]
        return cls(mine, Standardizer.stack([]), config)


def are_place_codes(values: Sequence[str]) -> bool:
    """Whether strings look like codes whose places mean something.

    Examples
    --------
    >>> are_place_codes(["5YJ3E1", "1N4AZ0", "WBY8P2"]), are_place_codes(["a word", "12 more"])
    (True, False)
    """
    if not values:
        return False
    length = _usual_length(values)
    n_same = sum(len(value) == length for value in values)
    n_digit = sum(any(map(str.isdigit, value)) for value in values)
    return (
        MIN_LENGTH <= length <= MAX_LENGTH
        and n_same >= MIN_SAME_LENGTH * len(values)
        and n_digit >= MIN_WITH_DIGIT * len(values)
        and not any(any(map(str.isspace, "".join(part))) for part in parts_of(values))
    )


def find_places(values: Sequence[str]) -> tuple[str, ...]:
    """The characters at each place of codes, in order.

    Examples
    --------
    >>> find_places(["5Y0", "5Z2"])
    ('5', 'YZ', '02')
    """
    length = min(_usual_length(values), MAX_LENGTH) if values else 0
    places: list[set[str]] = [set() for _ in range(length)]
    for part in parts_of(values):
        for k, place in enumerate(places):
            place.update(value[k] for value in part if len(value) > k)
    return tuple("".join(sorted(place)) for place in places)


def varying_places(places: Sequence[str]) -> list[tuple[int, str]]:
    """Places whose characters differ, and these."""
    return [(k, found) for k, found in enumerate(places) if len(found) > 1]


def place_features(spec: ColumnSpec, places: Sequence[str]) -> list[Feature]:
    """A category per place whose characters differ."""
    return [
        Feature(f"{spec.name}_{k + 1}", spec.position, n_codes=len(characters) + 1)
        for k, characters in varying_places(places)
    ]


def write_places(
    factor: Factor, places: Sequence[str], dense: NDArray[np.float32], first: int
) -> None:
    """Write the codes of the characters into the features from `first` on."""
    for column, (k, characters) in enumerate(varying_places(places), start=first):
        code_of = {character: code for code, character in enumerate(characters, start=1)}
        found = (code_of.get(value[k : k + 1], 0) for value in factor.values)
        size = len(factor.values) + 1
        codes = np.fromiter(itertools.chain(found, [0]), dtype=np.float32, count=size)
        dense[:, column] = codes[factor.codes]


def _usual_length(values: Sequence[str]) -> int:
    counts = Counter(map(len, values))
    return min(counts, key=lambda length: (-counts[length], length))
