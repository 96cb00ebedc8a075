from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.exceptions import DataConversionWarning

from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.target import Targets, read_targets

COLUMNS = {"a": [1.0, 2.0, None], "b": [10, 20, 30]}
EXPECTED = np.array([[1, 10], [2, 20], [np.nan, 30]])


@pytest.mark.parametrize(
    "y",
    [
        COLUMNS,
        {"a": np.array([1, 2, np.nan]), "b": pd.Series([10, 20, 30])},
        pd.DataFrame(COLUMNS, index=[7, 8, 9]),
        pd.DataFrame({"a": ["1", "2", None], "b": ["$10", "$20", "$30"]}),
        pl.DataFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.record_batch(COLUMNS),
    ],
)
def test_tables_of_every_library_keep_their_names(y):
    targets = read_targets(y, 3)
    np.testing.assert_array_equal(targets.values, EXPECTED)
    assert targets.values.dtype == np.float64
    assert targets.names == ("a", "b")


@pytest.mark.parametrize(
    "y",
    [
        EXPECTED,
        EXPECTED.astype(np.float32),
        EXPECTED.astype(object),
        [[1, 10], [2, 20], [None, 30]],
        [(1, "10"), (2, "20"), (None, "30")],
        list(EXPECTED),
        np.ma.array([[1, 10], [2, 20], [7, 30]], mask=[[0, 0], [0, 0], [1, 0]]),
        pd.DataFrame(EXPECTED),
    ],
)
def test_arrays_have_no_names(y):
    targets = read_targets(y, 3)
    np.testing.assert_array_equal(targets.values, EXPECTED)
    assert targets.names is None


@pytest.mark.parametrize("y", [[1, None, 3], np.array([1, np.nan, 3]), pd.Series([1, None, 3])])
def test_one_target_is_a_column(y):
    targets = read_targets(y, 3)
    np.testing.assert_array_equal(targets.values, [[1], [np.nan], [3]])
    assert targets.names is None


def test_a_single_column_is_one_target_with_scikit_learns_warning():
    for y in (np.array([[1.0], [2.0]]), pd.DataFrame({"a": [1.0, 2.0]})):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            assert read_targets(y, 2).values.shape == (2, 1)
    targets = read_targets({"a": [1.0, 2.0]}, 2)
    assert (targets.values.shape, targets.names) == ((2, 1), ("a",))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ({"a": [1, 2, 3], "b": [4, 4, None]}, "The target 'b' must vary, got 4 in all 2 rows"),
        ({"a": [1, 2, 3], "b": [None] * 3}, "The target 'b' must have values, got 3 missing"),
        ({"a": [1, 2, 3], "b": ["x", "y", "z"]}, "The target 'b' must be numbers, got text such"),
        ({"a": [1, 2, 3], "b": pd.to_datetime(["2020-01-01"] * 3)}, "The target 'b'.*got dates"),
        (np.ones((3, 2)), "The target 0 must vary, got 1 in all 3 rows"),
        (np.array([[1, np.inf], [2, 3], [3, 4]]), "The target 1 must be finite.*row 0"),
        (np.array([[1, 2], [3, 4]]), r"got 2 value\(s\) for 3 row"),
        (np.zeros((3, 2, 2)), r"got an array of shape \(3, 2, 2\).*table with one column each"),
        ([[1, 2], [3], [5]], "got lists of several lengths.*None where one is missing"),
        (np.ones((3, 2)) * 1j, "Complex data not supported"),
        (pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]), "Column names must be unique"),
    ],
)
def test_unusable_targets_are_refused_by_name(y, message):
    with pytest.raises(InvalidDataError, match=message):
        read_targets(y, 3)


def test_constant_targets_may_validate():
    assert read_targets({"a": [1, 1], "b": [2, 3]}, 2, must_vary=False).values.shape == (2, 2)


def test_durations_name_their_target():
    y = {"a": [1, 2], "b": pd.Series(pd.to_timedelta([1, 2], "s"))}
    with pytest.warns(TabNSMWarning, match="The target 'b' holds durations"):
        np.testing.assert_array_equal(read_targets(y, 2).values, [[1, 1], [2, 2]])


def test_sparse_targets_are_refused():
    with pytest.raises(TypeError, match="sparse"):
        read_targets(scipy.sparse.csr_array(np.eye(2)), 2)


def test_targets_are_matched_by_name_or_by_place():
    targets = Targets(EXPECTED, ("b", "a"))
    swapped = targets.in_order(("a", "b"), 2)
    np.testing.assert_array_equal(swapped.values, EXPECTED[:, ::-1])
    assert swapped.names == ("a", "b")
    assert targets.in_order(None, 2) is targets
    assert Targets(EXPECTED).in_order(("a", "b"), 2).values is EXPECTED
    with pytest.raises(InvalidDataError, match=r"y_val must have the targets of fit.*'c'"):
        targets.in_order(("a", "c"), 2)
    with pytest.raises(InvalidDataError, match=r"y must have as many targets as fit \(3\), got 2"):
        Targets(EXPECTED).in_order(None, 3, "y")
    with pytest.raises(InvalidDataError, match=r"as many targets as fit \(1\), got 2"):
        targets.in_order(("a",), 1)
