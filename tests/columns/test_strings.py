from __future__ import annotations

import pyarrow as pa
import pytest

from tabnsm.columns import EncoderConfig
from tabnsm.columns.fitting import ColumnToFit, FitScope
from tabnsm.columns.strings import are_categories, describe_strings
from tabnsm.tables.column import Column


def to_fit(values: list[str | None], keep_constant: bool = False, **options: object) -> ColumnToFit:
    scope = FitScope(EncoderConfig(**options), None, keep_constant)
    return ColumnToFit(Column("c", pa.array(values, pa.string())), 3, scope)


@pytest.mark.parametrize(
    ("n_values", "n_each", "repeated", "expected"),
    [
        (9, 1, "category", True),
        (10, 1, "category", False),
        (10, 9, "category", False),
        (10, 10, "category", True),
        (10, 10, "text", False),
    ],
)
def test_few_or_repeated_values_are_categories(n_values, n_each, repeated, expected):
    values = [f"v{k}" for k in range(n_values)] * n_each
    assert are_categories(to_fit(values, repeated_strings=repeated)) is expected


def test_facts_count_missing_and_distinct_values():
    spec = describe_strings(to_fit(["a", None, "b", " "]), "category")
    assert (spec.position, spec.kind, spec.missing, spec.distinct) == (3, "category", 0.5, 2)


def test_what_does_not_vary_is_dropped_unless_it_is_asked_for():
    assert describe_strings(to_fit(["a", "a"]), "category").kind == "drop"
    assert describe_strings(to_fit(["a", None]), "category").kind == "category"
    assert describe_strings(to_fit(["a", "a"], keep_constant=True), "text").kind == "text"
    asked = to_fit(["a", "a"], column_kinds={"c": "text"})
    assert describe_strings(asked, "text").kind == "text"
    assert describe_strings(to_fit([None, None], keep_constant=True), "text").kind == "drop"
