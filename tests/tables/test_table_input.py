from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1.5, None, 3.0], "b": [True, False, True], "s": ["x", None, "y"]})


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_frames_of_every_library_look_the_same(frame, convert):
    table = Table.from_native(convert(frame))
    assert table.names == ["a", "b", "s"]
    assert (table.n_rows, table.n_columns, table.has_names) == (3, 3, True)
    assert table.is_number == [True, True, False]
    np.testing.assert_array_equal(table.numbers([1, 0]), [[1, 1.5], [0, np.nan], [1, 3]])
    assert table.column("s").to_factor().values == ["x", "y"]
    np.testing.assert_array_equal(table.column("s").to_factor().codes, [0, -1, 1])


@pytest.mark.parametrize("convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_take_keeps_the_rows_asked_for(frame, convert):
    taken = Table.from_native(convert(frame)).take(np.array([2, 0]))
    assert taken.n_rows == 2
    np.testing.assert_array_equal(taken.numbers([0]).ravel(), [3.0, 1.5])


def test_arrays_get_numbered_names():
    table = Table.from_native(np.arange(6).reshape(3, 2))
    assert table.names == ["x0", "x1"]
    assert not table.has_names
    np.testing.assert_array_equal(table.take(np.array([1])).numbers([0, 1]), [[2.0, 3.0]])


def test_list_of_mixed_rows_keeps_numbers_and_missing_values():
    table = Table.from_native([[1, "a", None], [2.5, None, None]])
    np.testing.assert_array_equal(table.column("x0").to_float(), [1, 2.5])
    assert table.column("x1").to_factor().values == ["a"]
    assert table.column("x2").storage == "empty"


def test_list_of_numbers_is_a_number_array():
    assert Table.from_native([[1, 2.0], [3, 4.0]]).is_number == [True, True]


def test_pandas_without_string_names_is_like_an_array():
    table = Table.from_native(pd.DataFrame([[1, 2], [3, 4]]))
    assert not table.has_names
    assert table.names == ["0", "1"]
    assert Table.from_native(pd.DataFrame([[1, 2]], columns=[1, "1"])).names == ["x0", "x1"]


def test_a_table_is_passed_through():
    table = Table.from_native([[1]])
    assert Table.from_native(table) is table


def test_narwhals_frames_are_unwrapped(frame):
    import narwhals as nw

    table = Table.from_native(nw.from_native(pl.from_pandas(frame)))
    assert table.names == ["a", "b", "s"]


def test_read_only_input_is_not_changed():
    matrix = np.array([[1.0, np.inf], [2.0, 3.0]])
    matrix.setflags(write=False)
    table = Table.from_native(matrix)
    assert table.numbers([0, 1]).shape == (2, 2)


def test_a_record_batch_keeps_its_names(frame):
    batch = pa.RecordBatch.from_pandas(frame)
    table = Table.from_native(batch)
    assert (table.names, table.has_names) == (["a", "b", "s"], True)


def test_masked_values_are_missing():
    values = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    table = Table.from_native(values)
    np.testing.assert_array_equal(table.column("x1").to_float(), [np.nan, 4])


def test_integers_of_128_bits_are_numbers():
    frame = pl.DataFrame({"a": pl.Series([2**100, None], dtype=pl.Int128), "b": [1, 2]})
    np.testing.assert_array_equal(Table.from_native(frame).numbers([0]).ravel(), [2.0**100, np.nan])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
        (np.empty((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\)"),
        (np.arange(3), r"Expected 2D array, got 1D .*Reshape your data"),
        (5, r"Expected 2D array, got 0D"),
        (pd.Series([1, 2]), r"Expected 2D array, got 1D .*Reshape your data"),
        (pl.Series([1, 2]), r"Reshape your data"),
        (np.zeros((2, 2, 2)), r"Expected 2D array, got 3D"),
        (np.ones((2, 2)) * 1j, "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported"),
        ([[1, 2], [3]], "rows of one length"),
        (pl.LazyFrame({"a": [1]}), r"\.collect\(\)"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "unique, got 'a' more than once"),
        (pa.table([[1], [2]], names=["a", "a"]), "unique, got 'a' more than once"),
    ],
)
def test_unusable_tables_are_refused(bad, message):
    with pytest.raises(InvalidDataError, match=message):
        Table.from_native(bad)


def test_a_table_without_rows_only_where_it_is_allowed():
    for empty in (np.empty((0, 3)), pd.DataFrame({"a": []}), {"a": []}):
        assert Table.from_native(empty, min_rows=0).n_rows == 0
    with pytest.raises(InvalidDataError, match=r"0 feature\(s\)"):
        Table.from_native(np.empty((0, 0)), min_rows=0)


def test_columns_are_kept_within_the_context_alone():
    table = Table.from_native(pd.DataFrame({"a": ["x", "y"], "n": [1, 2]}))
    with table.keep_columns():
        first = table.column("a")
        with table.keep_columns():
            assert table.column("a") is first
        assert table.column("a") is first
        assert table.take(np.array([1])).column("a") is not first
    assert table.column("a") is not first
    with pytest.raises(KeyError), table.keep_columns():
        table.column("b")
    assert table.column("a") is not table.column("a")
