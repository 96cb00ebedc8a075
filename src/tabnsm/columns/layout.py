"""Where each encoded feature goes, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tabnsm.columns.group import ColumnGroup


@dataclass(frozen=True)
class Feature:
    """One encoded feature; its position is that of the input column, -1 if there are several.

    `n_codes` is 0 unless it is a category to embed. A derived name may be changed where a column
    has it.
    """

    name: str
    position: int
    n_codes: int = 0
    is_derived: bool = True


@dataclass(frozen=True)
class Layout:
    """Order of the features: numbers, date parts, missing indicators, categories, text."""

    value_at: dict[int, int]
    """First dense feature of a column's values, by its position in the table."""
    indicator_at: dict[int, int]
    names: list[str]
    """No two alike: a derived one gets a "_" where a column has it."""
    columns: list[int]
    """Input column of each feature, -1 for those of joined text."""
    category_sizes: tuple[int, ...]
    """Number of codes of each feature that is embedded, else 0."""
    n_dense: int
    """Features that are not text."""

    @classmethod
    def of(cls, groups: Sequence[ColumnGroup], column_names: Sequence[str]) -> Layout:
        """Lay out the features of some columns."""
        first = [group for group in groups if group.has_indicators]
        others = [group for group in groups if not group.has_indicators]
        values = [feature for group in first for feature in group.features()]
        indicators = _indicators(first)
        coded = [feature for group in others if group.is_dense for feature in group.features()]
        rest = [feature for group in others if not group.is_dense for feature in group.features()]
        dense = [*values, *indicators, *coded]
        value_at: dict[int, int] = {}
        for k, feature in enumerate(dense):
            if not len(values) <= k < len(values) + len(indicators):
                value_at.setdefault(feature.position, k)
        every = [*dense, *rest]
        return cls(
            value_at=value_at,
            indicator_at={
                feature.position: len(values) + k for k, feature in enumerate(indicators)
            },
            names=_unique_names(every, column_names),
            columns=[feature.position for feature in every],
            category_sizes=tuple(feature.n_codes for feature in every),
            n_dense=len(dense),
        )

    def with_dense(self, features: Sequence[Feature]) -> Layout:
        """The same with further dense features, between the others and text."""
        at = self.n_dense
        names = _unique_names(features, self.names)
        sizes = tuple(feature.n_codes for feature in features)
        return replace(
            self,
            names=[*self.names[:at], *names, *self.names[at:]],
            columns=[*self.columns[:at], *(f.position for f in features), *self.columns[at:]],
            category_sizes=(*self.category_sizes[:at], *sizes, *self.category_sizes[at:]),
            n_dense=at + len(features),
        )


def _indicators(groups: Sequence[ColumnGroup]) -> list[Feature]:
    return [
        Feature(f"{spec.name}_missing", spec.position)
        for group in groups
        for spec in group.specs
        if spec.has_indicator
    ]


def _unique_names(features: Sequence[Feature], column_names: Sequence[str]) -> list[str]:
    taken = set(column_names)
    names = []
    for feature in features:
        name = feature.name
        while feature.is_derived and name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names
