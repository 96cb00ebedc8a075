from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError
from tabnsm.tables.column import Column
from tabnsm.tables.objects import from_objects, from_times

UTC_NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)


def objects(*values: object) -> Column:
    return Column("c", from_objects("c", list(values)))


@pytest.mark.parametrize(
    ("values", "storage", "expected"),
    [
        ((1, None, 3), "number", [1, np.nan, 3]),
        ((1, 2.5), "number", [1, 2.5]),
        ((True, 2), "number", [1, 2]),
        ((decimal.Decimal("1.5"), None), "number", [1.5, np.nan]),
        ((10**400, -(10**400), 1), "number", [np.inf, -np.inf, 1]),
        ((datetime.timedelta(seconds=90), None), "number", [90, np.nan]),
        ((datetime.time(1, 0, 1), None), "number", [3601, np.nan]),
        ((datetime.date(1970, 1, 2), None), "temporal", [86400, np.nan]),
        ((datetime.datetime(1970, 1, 1, 1), None), "temporal", [3600, np.nan]),
        ((None, float("nan"), pd.NA, pd.NaT), "empty", [np.nan] * 4),
    ],
)
def test_objects_of_one_type_are_that_type(values, storage, expected):
    column = objects(*values)
    if storage == "empty":
        assert column.to_factor().values == []
    else:
        assert column.storage == storage
    np.testing.assert_array_equal(column.to_float(), expected)


def test_dates_with_and_without_zone_are_told_in_utc():
    east = UTC_NOON.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    column = objects(UTC_NOON, east, datetime.date(2020, 1, 1))
    seconds = column.to_float()
    assert seconds[0] == seconds[1] == seconds[2] + 12 * 3600


def test_mixed_objects_become_their_strings():
    factor = objects("a", 1, 2.0, None, b"raw", " ").to_factor()
    assert factor.values == ["a", "1", "2", "raw"]
    np.testing.assert_array_equal(factor.codes, [0, 1, 2, -1, 3, -1])


@pytest.mark.parametrize("nested", [{"foo": "bar"}, [1, 2], (1,), {1}, np.zeros(2)])
def test_nested_values_are_refused(nested):
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        objects(1.0, nested)
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Column("c", pa.array([[1], [2]]))


def test_complex_objects_are_refused():
    with pytest.raises(InvalidDataError, match="Complex data not supported"):
        objects(1j, "a")


@given(st.lists(st.one_of(st.none(), st.text(), st.integers(), st.floats(), st.booleans())))
def test_any_mix_of_values_becomes_a_factor(values):
    factor = Column("c", from_objects("c", values)).to_factor()
    assert len(factor.codes) == len(values)
    assert len(set(factor.values)) == len(factor.values)
    assert all(value.strip() for value in factor.values)
    assert factor.counts(None).sum() == len(values)


def test_half_of_a_surrogate_pair_does_not_stop_a_fit():
    assert objects("\ud83d", "b", None).to_factor().values == ["?", "b"]


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_times_of_numpy_keep_their_meaning_in_any_unit(unit):
    day = from_times(np.array(["1970-01-02", "NaT"], dtype=f"datetime64[{unit}]"))
    np.testing.assert_array_equal(Column("c", day).to_float(), [86400, np.nan])
    length = from_times(np.array([1, "NaT"], dtype="timedelta64[D]").astype(f"m8[{unit}]"))
    np.testing.assert_array_equal(Column("c", length).to_float(), [86400, np.nan])
