from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.preprocessing import Table
from tabnsm.preprocessing.column import Column, parse_floats


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


def test_words_are_no_numbers():
    with pytest.raises(InvalidDataError, match=r"'c' must hold numbers.*got 'one'"):
        Column("c", pa.array(["one", "two"])).to_float()
    with pytest.warns(TabNSMWarning, match=r"1 value\(s\) such as 'two' are none"):
        assert np.isnan(Column("c", pa.array(["1", "two"])).to_float()).tolist() == [False, True]
    _, valid = parse_floats(["1_000", "", "1e5", " 2 ", "+3"])
    assert valid.tolist() == [False, False, True, True, True]


def test_booleans_written_as_words_are_numbers_as_in_pandas():
    column = Column("c", pa.array(["True", "FALSE", None, " true "]))
    assert column.to_float()[[0, 1, 3]].tolist() == [1, 0, 1]
    assert parse_floats(["yes", "truely"])[1].tolist() == [False, False]
