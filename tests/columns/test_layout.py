from __future__ import annotations

from tabnsm.columns.layout import Layout
from tabnsm.columns.schema import ColumnSpec

SPECS = [
    ColumnSpec(0, "t", "text"),
    ColumnSpec(1, "c", "category", vocabulary=("a", "b")),
    ColumnSpec(2, "d", "date", date_parts=("days", "month"), has_indicator=True),
    ColumnSpec(3, "gone", "drop"),
    ColumnSpec(4, "only_missing", "numeric", has_value=False, has_indicator=True),
    ColumnSpec(5, "n", "numeric"),
]


def test_numbers_dates_indicators_categories_text():
    layout = Layout.of(SPECS, d_text=2, embed_categories=True)
    assert layout.names == [
        "n", "d_days", "d_month", "only_missing_missing", "d_missing", "c", "text_0", "text_1"
    ]  # fmt: skip
    assert layout.columns == [5, 2, 2, 4, 2, 1, -1, -1]
    assert layout.category_sizes == (0, 0, 0, 0, 0, 3, 0, 0)
    assert layout.n_dense == 6
    assert layout.value_at == {5: 0, 2: 1, 1: 5}
    assert layout.indicator_at == {4: 3, 2: 4}


def test_codes_as_numbers_have_no_size():
    layout = Layout.of(SPECS, d_text=0, embed_categories=False)
    assert set(layout.category_sizes) == {0}


def test_no_two_features_have_one_name():
    specs = [
        ColumnSpec(0, "a", "numeric", has_indicator=True),
        ColumnSpec(1, "a_missing", "numeric"),
        ColumnSpec(2, "text_0", "numeric"),
        ColumnSpec(3, "t", "text"),
    ]
    names = Layout.of(specs, d_text=2, embed_categories=True).names
    assert names == ["a", "a_missing", "text_0", "a_missing_", "text_0_", "text_1"]
