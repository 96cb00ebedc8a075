from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.tables.column import Column
from tabnsm.tables.date_format import DateFormat
from tabnsm.tables.number_format import PLAIN, NumberFormat
from tabnsm.tables.reading import (
    ReadingNotes,
    Unreadable,
    numbers_or_missing,
    read_dates,
    read_numbers,
)


def read(values: object, number_format: NumberFormat = PLAIN, **options: bool):
    column = Column("c", values if isinstance(values, pa.Array) else pa.array(values))
    return read_numbers(column, number_format, **{"from_dates": False, **options})


def test_unreadable_strings_are_missing():
    column = Column("d", pa.array(["2020-01-01", "soon", None]))
    _, missing, _ = read_dates(column, "Y-m-d")
    assert missing.tolist() == [False, True, True]


def test_without_a_format_the_first_that_fits_is_taken():
    column = Column("d", pa.array(["2020-01-02", "02.01.2020", "01/02/2020"]))
    micros, missing, _ = read_dates(column, None)
    assert not missing.any()
    assert len(set(micros.tolist())) == 1


def test_numbers_are_no_dates():
    with pytest.raises(InvalidDataError, match="'d' must hold dates"):
        read_dates(Column("d", pa.array([1, 2])), None)


@pytest.mark.parametrize("nothing", [pa.array([None, float("nan")]), pa.nulls(2)])
def test_a_column_without_values_may_be_of_any_type(nothing):
    _, missing, _ = read_dates(Column("d", nothing), "Y-m-d")
    assert missing.all()


def test_strings_among_numbers_are_missing_and_reported():
    values, unreadable = read(["1", "two", "?", None, "two", "3"])
    np.testing.assert_array_equal(values, [1, np.nan, np.nan, np.nan, np.nan, 3])
    assert unreadable == Unreadable("c", "numbers", 2, ("two",))
    _, unreadable = read(["1", "two", "?", None, "two", "3"], count_markers=True)
    assert unreadable == Unreadable("c", "numbers", 3, ("two", "?"))
    assert read(["1", "?", None])[1] is None


def test_strings_in_a_numeric_column_are_refused():
    with pytest.raises(InvalidDataError, match=r"'c' must hold numbers.*text such as 'one'"):
        read(["one", "two"])
    # One row alone is a row with a missing value, and so is a batch of markers.
    assert np.isnan(read(["one"])[0]).all()
    assert np.isnan(read(["?", "unknown"])[0]).all()


@pytest.mark.parametrize(
    "dates",
    [
        pa.array(pd.to_datetime(["2020-01-02"])),
        ["2020-01-02"],
        ["29 Aug 2011", None],
        ["01/02/2020", "?", "01/03/2020"],
    ],
)
def test_dates_are_refused_where_numbers_were(dates):
    with pytest.raises(InvalidDataError, match=r"'c' must hold numbers.*got dates such as"):
        read(dates)


def test_dates_that_were_numbers_at_fit_are_numbers():
    dates = pa.array(pd.to_datetime(["1970-01-02", None]))
    np.testing.assert_array_equal(read(dates, from_dates=True)[0], [86400, np.nan])
    assert np.isnan(read(pa.nulls(2, pa.timestamp("us")))[0]).all()


def test_a_column_that_must_be_numbers_is_read_in_its_format():
    values, others = numbers_or_missing(Column("c", pa.array(["$1,200", "?", "5", None])))
    np.testing.assert_array_equal(values, [1200, np.nan, 5, np.nan])
    assert others == []
    assert numbers_or_missing(Column("c", pa.array(["1", "low", "low", "x"])))[1] == ["low", "x"]


def test_one_warning_names_all_columns():
    notes = ReadingNotes(
        [Unreadable(f"c{k}", "numbers", 2, ("?", "a long text " * 9)) for k in range(7)],
        {"d": DateFormat("m/d/Y", "01/02/2020"), "e": DateFormat("d/m/Y, m/d/Y", "03/04/2020")},
    )
    with pytest.warns(TabNSMWarning) as caught:
        notes.warn(fitting=True)
    unreadable, ambiguous = (str(warning.message) for warning in caught)
    assert unreadable.startswith("14 value(s) could not be read and count as missing, in 'c0' (2 ")
    assert "and 2 more column(s)" in unreadable
    assert "column_kinds={'c0': 'category'}" in unreadable
    assert "a long text " * 4 not in unreadable
    assert "'d' ('01/02/2020' is read with the month first)" in ambiguous
    assert "'e' ('03/04/2020' is read with the day first)" in ambiguous
    assert "pandas.to_datetime(X['d'], dayfirst=True)" in ambiguous
    ReadingNotes().warn(fitting=True)
