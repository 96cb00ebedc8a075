from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.tables.date_format import (
    ANY_DATE,
    DateFormat,
    find_ambiguous,
    find_date_format,
    parse_dates,
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
        ("29 Aug 2011", "d b Y", "2011-08-29T00:00:00.000000"),
        ("29-AUG-2011 10:30", "d b Y", "2011-08-29T10:30:00.000000"),
        ("29-Aug-11", "d b Y", "2011-08-29T00:00:00.000000"),
        ("Mon, 29 Aug 2011 10:30:00 GMT", "d b Y", "2011-08-29T10:30:00.000000"),
        ("1st September 2011", "d b Y", "2011-09-01T00:00:00.000000"),
        ("Aug 29, 2011", "b d Y", "2011-08-29T00:00:00.000000"),
        ("Monday, August 29, 2011, 1:05 pm", "b d Y", "2011-08-29T13:05:00.000000"),
        ("Sept. 3 2011", "b d Y", "2011-09-03T00:00:00.000000"),
        ("2011-Aug-29", "Y b d", "2011-08-29T00:00:00.000000"),
        ("Aug-2011", "b Y", "2011-08-01T00:00:00.000000"),
        ("31-01-2020", "d-m-Y", "2020-01-31T00:00:00.000000"),
        ("01-31-2020", "m-d-Y", "2020-01-31T00:00:00.000000"),
        ("1/31/68", "m/d/y", "2068-01-31T00:00:00.000000"),
        ("1/31/69", "m/d/y", "1969-01-31T00:00:00.000000"),
        ("31.01.20", "d.m.y", "2020-01-31T00:00:00.000000"),
        ("31 Jan 2020", "m/d/Y, d b Y", "2020-01-31T00:00:00.000000"),
        ("1.2.10", "d.m.y", None),
        ("29 Foo 2011", "d b Y", None),
        ("31 Feb 2011", "d b Y", None),
        ("Room 29 Aug 2011", "d b Y", None),
    ],
)
def test_parse_dates(text, date_format, expected):
    assert parse_one(text, date_format) == expected


def found(values: list[str]) -> tuple[str, str] | None:
    date_format = find_date_format(values)
    return None if date_format is None else (date_format.name, date_format.ambiguous)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["01/13/2020", "03/04/2020"], ("m/d/Y", "")),
        (["01/02/2020", "13/04/2020"], ("d/m/Y", "")),
        (["01/02/2020", "03/04/2020"], ("m/d/Y", "01/02/2020")),
        (["01-02-20", "03-04-20"], ("m-d-y", "01-02-20")),
        (["05/05/2020", "06/06/2020"], ("m/d/Y", "")),
        (["01.02.2020", "03.04.2020"], ("d.m.Y", "")),
        # The order that more rows prove is the order of those that prove none.
        (["01/13/2020", "01/02/2020", "13/01/2020", "14/01/2020"], ("d/m/Y, m/d/Y", "01/02/2020")),
        (["01/13/2020", "01/02/2020", "13/01/2020"], ("m/d/Y, d/m/Y", "01/02/2020")),
        (["2020-01-02", "29 Aug 2011", "Aug 30, 2011"], ("Y-m-d, d b Y, b d Y", "")),
        (["2020-01-02", "25/12/2020", "01/02/2020"], ("Y-m-d, d/m/Y", "")),
        (["2020-01-02", "2020-01-03", "unknown"], ("Y-m-d", "")),
        (["2020-01-01"] * 30 + ["never"] * 2, None),
        (["2020-01-01", "never"], None),
        (["2020-01-01", "?"], None),
        (["soon", "2020-01-01", "later"], None),
        ([], None),
    ],
)
def test_find_date_format(values, expected):
    assert found(values) == expected


def test_dates_of_one_order_mean_the_same_wherever_they_stand():
    values = ["01/02/2020", "13/01/2020", "25 Dec 2020"]
    for order in (values, values[::-1]):
        micros, valid = parse_dates(order, find_date_format(order).name)
        assert valid.all()
        days = sorted(micros.astype("datetime64[us]").astype("datetime64[D]").astype(str))
        assert days == ["2020-01-13", "2020-02-01", "2020-12-25"]


def test_a_few_strings_that_are_no_dates_are_left_out():
    days = pd.date_range("2020-01-01", periods=99).strftime("%d %b %Y").tolist()
    assert found([*days, "when it rains"]) == ("d b Y", "")
    assert found([*days[:30], "when it rains"]) is None
    assert find_date_format(["soon", "2020-01-01"], forced=True) == DateFormat("Y-m-d")
    assert find_date_format(["soon", "later"], forced=True) is None


def test_the_frequent_strings_decide():
    values = [f"remark {k}" for k in range(30)] + ["2020-01-02", "2020-01-03"]
    counts = np.array([1] * 30 + [2_000] * 2)
    assert find_date_format(values) is None
    assert find_date_format(values, counts) == DateFormat("Y-m-d")


STYLES = {
    "%Y-%m-%d": "Y-m-d", "%Y/%m/%d": "Y/m/d", "%d.%m.%Y": "d.m.Y", "%Y.%m.%d": "Y.m.d",
    "%m/%d/%Y": "m/d/Y", "%d/%m/%Y": "d/m/Y", "%m-%d-%Y": "m-d-Y", "%d-%m-%Y": "d-m-Y",
    "%d %b %Y": "d b Y", "%d-%B-%Y": "d b Y", "%a, %d %b %Y": "d b Y", "%b %d, %Y": "b d Y",
    "%A, %B %d, %Y": "b d Y", "%Y-%b-%d": "Y b d", "%d %b %y": "d b Y", "%m/%d/%y": "m/d/y",
    "%d/%m/%y": "d/m/y", "%d.%m.%y": "d.m.y", "%m-%d-%y": "m-d-y", "%d-%m-%y": "d-m-y",
}  # fmt: skip


@given(
    st.sampled_from(sorted(STYLES)),
    st.lists(st.dates(datetime.date(1969, 1, 1), datetime.date(2068, 12, 31)), min_size=1),
    st.sampled_from(["", " %H:%M", "T%H:%M:%S", " %I:%M %p"]),
)
def test_what_strftime_writes_is_read_back(style, days, time):
    moments = [datetime.datetime(d.year, d.month, d.day, 13, 14) for d in days]
    texts = [moment.strftime(style + time) for moment in moments]
    micros, valid = parse_dates(texts, STYLES[style])
    assert valid.all()
    expected = moments if time else [datetime.datetime(d.year, d.month, d.day) for d in days]
    assert micros.astype("datetime64[us]").tolist() == [
        moment.replace(second=0) for moment in expected
    ]


@pytest.mark.slow
@given(st.lists(st.text()))
def test_any_text_is_parsed_or_refused(values):
    find_date_format(values)
    parse_dates(values, ANY_DATE)
    find_ambiguous(values)
