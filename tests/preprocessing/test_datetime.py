from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError
from tabnsm.preprocessing.column import Column
from tabnsm.preprocessing.datetime import (
    DATE_PARTS,
    date_parts,
    find_date_format,
    parse_dates,
    read_dates,
)


def parse_one(text: str, date_format: str) -> str | None:
    micros, valid = parse_dates([text], date_format)
    return str(micros[0].astype("datetime64[us]")) if valid[0] else None


@pytest.mark.parametrize(
    ("text", "date_format", "expected"),
    [
        ("2024-02-29", "Y-m-d", "2024-02-29T00:00:00.000000"),
        ("2024-02-29 13:14", "Y-m-d", "2024-02-29T13:14:00.000000"),
        ("2024-02-29T13:14:15.25", "Y-m-d", "2024-02-29T13:14:15.250000"),
        ("2024-02-29T13:14:15.123456789Z", "Y-m-d", "2024-02-29T13:14:15.123456"),
        ("2024-02-29T13:14:15+02:00", "Y-m-d", "2024-02-29T11:14:15.000000"),
        ("2024-02-29 23:00:00 -0130", "Y-m-d", "2024-03-01T00:30:00.000000"),
        ("03/01/2020 12:00:00 AM", "m/d/Y", "2020-03-01T00:00:00.000000"),
        ("3/1/2020 12:05 pm", "m/d/Y", "2020-03-01T12:05:00.000000"),
        ("31/12/1999", "d/m/Y", "1999-12-31T00:00:00.000000"),
        ("31.12.1999 01:02", "d.m.Y", "1999-12-31T01:02:00.000000"),
        ("1999/12/31", "Y/m/d", "1999-12-31T00:00:00.000000"),
        (" 0001-01-01 ", "Y-m-d", "0001-01-01T00:00:00.000000"),
        ("2023-02-29", "Y-m-d", None),
        ("2024-13-01", "Y-m-d", None),
        ("2024-00-01", "Y-m-d", None),
        ("2024-01-00", "Y-m-d", None),
        ("2024-01-01 24:00", "Y-m-d", None),
        ("2024-01-01 13:00 PM", "Y-m-d", None),
        ("2024-01-01 later", "Y-m-d", None),
        ("2024-01", "Y-m-d", None),
    ],
)
def test_parse_dates(text, date_format, expected):
    assert parse_one(text, date_format) == expected


def test_month_comes_first_unless_some_month_exceeds_twelve():
    assert find_date_format(["01/02/2020", "03/04/2020"]) == "m/d/Y"
    assert find_date_format(["01/02/2020", "13/04/2020"]) == "d/m/Y"
    assert find_date_format(["01/13/2020", "13/01/2020"]) is None
    assert find_date_format(["2020-01-01"] * 30 + ["never"]) is None
    assert find_date_format([]) is None


@given(st.lists(st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2500, 1, 1))))
def test_iso_strings_and_parts_match_the_standard_library(moments):
    micros, valid = parse_dates([moment.isoformat() for moment in moments], "Y-m-d")
    assert valid.all()
    parts = date_parts(micros, ~valid, 0)
    epoch = datetime.datetime(1970, 1, 1)
    for row, moment in zip(parts, moments, strict=True):
        expected = [
            (moment - epoch) / datetime.timedelta(days=1),
            moment.year,
            moment.month,
            moment.day,
            moment.weekday(),
            moment.timetuple().tm_yday,
            moment.hour,
            moment.minute,
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-12)
        assert len(expected) == len(DATE_PARTS)


@given(st.lists(st.text()))
def test_any_text_is_parsed_or_refused(values):
    find_date_format(values)


def test_unreadable_strings_are_missing():
    column = Column("d", pa.array(["2020-01-01", "soon", None]))
    _, missing = read_dates(column, "Y-m-d")
    assert missing.tolist() == [False, True, True]


def test_without_a_format_the_first_that_fits_is_taken():
    column = Column("d", pa.array(["2020-01-02", "02.01.2020", "01/02/2020"]))
    micros, missing = read_dates(column, None)
    assert not missing.any()
    assert len(set(micros.tolist())) == 1


def test_numbers_are_no_dates():
    with pytest.raises(InvalidDataError, match="'d' must hold dates"):
        read_dates(Column("d", pa.array([1, 2])), None)


@pytest.mark.parametrize("nothing", [pa.array([None, float("nan")]), pa.nulls(2)])
def test_a_column_without_values_may_be_of_any_type(nothing):
    _, missing = read_dates(Column("d", nothing), "Y-m-d")
    assert missing.all()
