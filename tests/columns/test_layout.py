from __future__ import annotations

from collections.abc import Sequence

from tabnsm.columns import EncoderConfig
from tabnsm.columns.kinds import KINDS
from tabnsm.columns.layout import Layout
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer

SPECS = [
    ColumnSpec(0, "t", "text"),
    ColumnSpec(1, "c", "category", vocabulary=("a", "b")),
    ColumnSpec(2, "d", "date", date_parts=("days", "month"), has_indicator=True),
    ColumnSpec(3, "gone", "drop"),
    ColumnSpec(4, "only_missing", "numeric", has_value=False, has_indicator=True),
    ColumnSpec(5, "n", "numeric"),
]


class Block:
    """Stands for a fitted text block, of which the layout needs the widths alone."""

    def __init__(self, d_text: int | list[int]) -> None:
        self.d_text = d_text


def lay_out(
    specs: Sequence[ColumnSpec], d_text: int | list[int], encoding: str = "embedding"
) -> Layout:
    config = EncoderConfig(category_encoding=encoding)
    groups = [
        group([spec for spec in specs if spec.kind == kind], Standardizer.stack([]), config)
        for kind, group in KINDS.items()
    ]
    groups[-1].block = Block(d_text)
    return Layout.of(groups, [spec.name for spec in specs])


def test_numbers_dates_indicators_categories_text():
    layout = lay_out(SPECS, d_text=2)
    assert layout.names == [
        "n", "d_days", "d_month", "only_missing_missing", "d_missing", "c", "text_0", "text_1"
    ]  # fmt: skip
    assert layout.columns == [5, 2, 2, 4, 2, 1, -1, -1]
    assert layout.category_sizes == (0, 0, 0, 0, 0, 3, 0, 0)
    assert layout.n_dense == 6
    assert layout.value_at == {5: 0, 2: 1, 1: 5}
    assert layout.indicator_at == {4: 3, 2: 4}


def test_features_of_separate_text_belong_to_a_column():
    layout = lay_out(SPECS, d_text=[2])
    assert layout.names[-2:] == ["t_text_0", "t_text_1"]
    assert layout.columns[-2:] == [0, 0]


def test_codes_as_numbers_have_no_size():
    layout = lay_out(SPECS, d_text=0, encoding="code")
    assert set(layout.category_sizes) == {0}


def test_no_two_features_have_one_name():
    specs = [
        ColumnSpec(0, "a", "numeric", has_indicator=True),
        ColumnSpec(1, "a_missing", "numeric"),
        ColumnSpec(2, "text_0", "numeric"),
        ColumnSpec(3, "t", "text"),
    ]
    names = lay_out(specs, d_text=2).names
    assert names == ["a", "a_missing", "text_0", "a_missing_", "text_0_", "text_1"]
