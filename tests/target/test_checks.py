from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.target import check_target


@pytest.mark.parametrize(
    "y",
    [
        [1, 2.5, None],
        (1, 2.5, None),
        ["1", "2.5", None],
        ["$1.00", "$2.5", "unknown"],
        ["1,0 kg", "2,5 kg", "?"],
        np.array([1, 2.5, np.nan], dtype=np.float32),
        np.array([1, 2.5, None], dtype=object),
        pd.Series([1, 2.5, None], index=[7, 8, 9]),
        pd.Series(["1", "2.5", None]),
        pd.Series([1, 2.5, None], dtype="Float64"),
        pd.Series(["1", "2.5", None], dtype="category"),
        pl.Series([1, 2.5, None], strict=False),
        pa.array([1, 2.5, None]),
        np.ma.array([1, 2.5, 7], mask=[False, False, True]),
        pa.chunked_array([[1.0], [2.5, None]]),
    ],
)
def test_targets_of_every_library(y):
    values, missing = check_target(y, 3)
    np.testing.assert_array_equal(values, [1, 2.5, np.nan])
    assert values.dtype == np.float64
    assert missing.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (["low", "high", "1"], r"must be numbers, got text such as 'low', 'high'. Convert it"),
        (["$1", "$2", "about $3"], "must be numbers, got text such as 'about \\$3'"),
        (["?", "-", "unknown"], "must have values, got 3 missing"),
        (pd.to_datetime(["2020-01-01"] * 3), "got dates"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[ns]"), "got dates"),
        ([None, None, np.nan], "must have values, got 3 missing"),
        ([2, 2, None], "must vary, got 2 in all 2 rows"),
        ([1, np.inf, 2], "must be finite, got 1 infinite value.*row 1"),
        ([1, 2], r"got 2 value\(s\) for 3 row"),
        (np.ones((3, 2)), r"y should be a 1d array, got an array of shape \(3, 2\)"),
        ([[1, 2], [3, 4], [5, 6]], r"y should be a 1d array"),
        ([[1, 2], [3], [5]], r"y should be a 1d array, got lists of several lengths"),
        ([10**400, 1, 2], "must be finite, got 1 infinite value.*row 0"),
        (np.ones(3) * 1j, "Complex data not supported"),
        (5, "y should be a 1d array"),
    ],
)
def test_unusable_targets_are_refused(y, message):
    with pytest.raises(InvalidDataError, match=message):
        check_target(y, 3)


DURATIONS = np.array([1_000, 2_500, "NaT"], dtype="timedelta64[ms]")


@pytest.mark.parametrize(
    "y",
    [
        DURATIONS,
        DURATIONS.astype("timedelta64[ns]"),
        pd.Series(DURATIONS),
        list(pd.Series(DURATIONS)),
        pl.Series(DURATIONS),
        pa.array(DURATIONS),
    ],
)
def test_durations_are_seconds_with_a_warning(y):
    with pytest.warns(TabNSMWarning, match=r"learned in seconds.* Convert it to numbers") as caught:
        values, _ = check_target(y, 3)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(values, [1, 2.5, np.nan])


def test_a_column_vector_is_raveled_with_a_warning():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        values, _ = check_target(np.array([[1.0], [2.0]]), 2)
    assert values.shape == (2,)


def test_sparse_targets_are_refused():
    import scipy.sparse

    with pytest.raises(TypeError, match="sparse"):
        check_target(scipy.sparse.csr_array(np.eye(2)), 2)
