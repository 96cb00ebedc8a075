from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabnsm.tables import Table
from tabnsm.tables.column import Column
from tabnsm.tables.number_format import NumberFormat


def test_whole_floats_are_written_like_integers():
    column = Column("zip", pa.array([98101.0, None, 0.5]))
    assert column.to_factor().values == ["0.5", "98101"]
    assert Column("b", pa.array([True, False])).to_factor().values == ["False", "True"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"c": pd.Categorical(["u", None, "v"])}),
        pl.DataFrame({"c": pl.Series(["u", None, "v"], dtype=pl.Categorical)}),
        pl.DataFrame({"c": pl.Series(["u", None, "v"], dtype=pl.Enum(["v", "u"]))}),
        pa.table({"c": pa.array(["u", None, "v"]).dictionary_encode()}),
    ],
)
def test_categorical_types_are_kept_apart_from_strings(frame):
    column = Table.from_native(frame).column("c")
    assert column.storage == "categorical"
    factor = column.to_factor()
    assert [factor.values[k] if k >= 0 else None for k in factor.codes] == ["u", None, "v"]


def test_categories_that_are_numbers_are_written_out():
    factor = Table.from_native(pd.DataFrame({"c": pd.Categorical([3, None, 1])})).column("c")
    assert sorted(factor.to_factor().values) == ["1", "3"]


def test_periods_are_dates():
    frame = pd.DataFrame({"c": pd.period_range("2020-01", periods=2, freq="M")})
    assert Table.from_native(frame).column("c").to_factor().values == ["2020-01-01", "2020-02-01"]


def test_strings_that_are_no_numbers_are_missing():
    column = Column("c", pa.array(["1", "two", None, "$3"]))
    np.testing.assert_array_equal(column.to_float(), [1, np.nan, np.nan, np.nan])
    money = column.to_float(NumberFormat(prefix="$"))
    np.testing.assert_array_equal(money, [1, np.nan, np.nan, 3])


def test_used_values_and_their_counts():
    factor = Column("c", pa.array(["a", "b", "a", None, "c"])).to_factor()
    values, counts = factor.used(np.array([0, 2, 3, 4]))
    assert (values, counts.tolist()) == (["a", "c"], [2, 1])


def test_strings_are_parsed_once_for_each_format():
    column = Column("c", pa.array(["1,5", "2,5", None, "1,5"]))
    calls = []

    def parse(values: list[str], written: str) -> int:
        calls.append((values, written))
        return len(calls)

    assert [column.parse(parse, "a"), column.parse(parse, "b"), column.parse(parse, "a")] == [
        1,
        2,
        1,
    ]
    assert calls == [(["1,5", "2,5"], "a"), (["1,5", "2,5"], "b")]


def test_a_column_of_strings_keeps_no_second_copy_of_them():
    column = Column("c", pa.array(["a", "b", None]))
    factor = column.to_factor()
    assert column._data is None
    assert (len(column), column.storage, column.is_duration) == (3, "string", False)
    assert column.to_factor() is factor
    assert np.isnan(column.to_float()).all()
