from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.errors import InvalidDataError, InvalidOptionError, TabNSMWarning
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

N = 24
LETTERS = [chr(ord("a") + k % 20) for k in range(N)]
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=40 * k) for k in range(N)]


def kinds(frame: object, rows: object = None, **options: object) -> dict[str, str]:
    encoder = TableEncoder(EncoderConfig(text_encoder=FakeTextEncoder(4), **options))
    encoder.fit_transform(Table.from_native(frame), rows)
    return {spec.name: spec.kind for spec in encoder.specs}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (np.arange(N), "numeric"),
        (np.arange(N) % 2 == 0, "numeric"),
        (pd.array([1, None] * 12, dtype="Int64"), "numeric"),
        (pd.array([True, None, False] * 8, dtype="boolean"), "numeric"),
        ([str(k) for k in range(N)], "numeric"),
        (["1.5", None, " 2e3 "] * 8, "numeric"),
        ([decimal.Decimal(k) for k in range(N)], "numeric"),
        (pd.to_timedelta(np.arange(N), unit="h"), "numeric"),
        ([f"${k},000" for k in range(1, N + 1)], "numeric"),
        ([f"{k} kg" for k in range(N)], "numeric"),
        ([f"{k}.5%" for k in range(N)], "numeric"),
        ([1.5, "?", "2.5", "unknown"] * 6, "numeric"),
        (["2", "?"] * 12, "category"),
        ([1, 2, "many"] * 8, "category"),
        ([f"{k % 20:03d}" for k in range(N)], "code"),
        ([f"0{k % 3}" for k in range(N)], "category"),
        (pd.Categorical([f"${k % 20}" for k in range(N)]), "category"),
        ([day.strftime("%d %b %Y") for day in DAYS], "date"),
        ([*[day.strftime("%b %d, %Y") for day in DAYS[2:]], "?", "unknown"], "date"),
        ([DAYS[0], *[day.strftime("%d-%b-%Y") for day in DAYS[1:]]], "date"),
        (["a", "b", None] * 8, "category"),
        ([f"v{k % 9}" for k in range(N)], "category"),
        ([f"v{k % 10}" for k in range(N)], "text"),
        (LETTERS, "text"),
        (pd.Categorical(LETTERS), "category"),
        (pd.Categorical([2020 + k for k in range(N)]), "category"),
        ([1, "a"] * 12, "category"),
        (DAYS, "date"),
        (pd.to_datetime(DAYS), "date"),
        (pd.to_datetime(DAYS).tz_localize("US/Eastern"), "date"),
        ([day.isoformat() for day in DAYS], "date"),
        ([day.strftime("%m/%d/%Y 12:00:00 AM") for day in DAYS], "date"),
        ([day.strftime("%d.%m.%Y") for day in DAYS], "date"),
        ([None] * N, "drop"),
        ([float("nan")] * N, "drop"),
        ([""] * N, "drop"),
        ([3] * N, "drop"),
        (["same"] * N, "drop"),
        ([DAYS[0]] * N, "drop"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*could not be read")
def test_kind_of_a_column(values, kind):
    frame = pd.DataFrame({"c": values, "other": np.arange(N)})
    assert kinds(frame)["c"] == kind


@pytest.mark.parametrize("values", [pd.to_datetime(DAYS), [d.isoformat() for d in DAYS]])
def test_dates_are_strings_like_any_other_when_asked(values):
    frame = pd.DataFrame({"c": values})
    assert kinds(frame, date_encoding="text", repeated_strings="text") == {"c": "text"}
    few = frame.iloc[[0, 1, 2] * 4]
    assert kinds(few, date_encoding="text") == {"c": "category"}


def test_native_dates_are_rendered_as_iso():
    encoder = FakeTextEncoder(4)
    options = {"date_encoding": "text", "repeated_strings": "text", "text_cache": False}
    config = EncoderConfig(text_encoder=encoder, **options)
    TableEncoder(config).fit_transform(Table.from_native(pl.DataFrame({"c": DAYS})))
    assert sorted(encoder.encoded) == [day.isoformat() for day in DAYS]


def test_only_the_fit_rows_decide():
    frame = pd.DataFrame({"c": ["1", "2", "x"], "n": [1.0, 1.0, 5.0], "m": [1, 2, 3]})
    with pytest.warns(
        TabNSMWarning, match=r"1 value\(s\) could not be read.*'c' \(1 not numbers, such as 'x'\)"
    ):
        assert kinds(frame, [0, 1])["c"] == "numeric"
    assert kinds(frame, [0, 1], column_kinds={"c": "category"})["c"] == "category"
    assert kinds(frame.drop(columns="c"), [0, 1]) == {"n": "drop", "m": "numeric"}
    assert kinds(frame[["m"]], np.array([True, True, False])) == {"m": "numeric"}
    with pytest.raises(InvalidDataError, match="at least 1 of the 3 rows"):
        kinds(frame, [])


def test_the_user_overrules():
    frame = pd.DataFrame(
        {"zip": np.arange(N) % 12, "word": LETTERS, "n": np.arange(N), "when": DAYS, "k": [1] * N}
    )
    asked = {"zip": "category", "word": "category", "n": "drop", "when": "text", "k": "numeric"}
    assert kinds(frame, column_kinds=asked) == asked
    assert kinds(frame, column_kinds={"zip": "text", "when": "numeric"})["zip"] == "text"


@pytest.mark.parametrize(("n_rows", "kind"), [(120, "category"), (119, "text")])
def test_repeated_strings_are_categories(n_rows, kind):
    towns = pd.Series([f"town {k % 12}" for k in range(n_rows)])
    frame = pd.DataFrame({"town": towns, "n": np.arange(n_rows)})
    assert kinds(frame)["town"] == kind
    assert kinds(frame, repeated_strings="text")["town"] == "text"
    # Missing rows are not among those that repeat.
    with_gaps = pd.concat([frame, pd.DataFrame({"town": [None] * 50, "n": range(50)})])
    assert kinds(with_gaps)["town"] == kind


def test_a_date_column_without_values_can_be_asked_for():
    frame = pd.DataFrame({"when": [np.nan] * 12, "n": range(12)})
    assert kinds(frame, column_kinds={"when": "date"}) == {"when": "date", "n": "numeric"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"wrod": "text"}, r"must name columns of the table, got 'wrod'. The columns are 'word'"),
        ({"word": "words"}, r"column_kinds\['word'\] must be one of 'numeric'.*got 'words'"),
        ({"word": "numeric"}, r"needs numbers, got values such as 'a', 'b', 'c'"),
        ({"word": "date"}, r"needs dates, got values such as 'a'"),
        ({"n": "date"}, r"needs dates, got numbers"),
        ("word", r"must be a mapping from column name to kind.*got str"),
    ],
)
def test_impossible_requests_are_refused(asked, message):
    frame = pd.DataFrame({"word": LETTERS, "n": np.arange(N)})
    with pytest.raises(InvalidOptionError, match=message):
        kinds(frame, column_kinds=asked)


def test_a_table_of_constants_keeps_them_as_zeros():
    encoder = TableEncoder(EncoderConfig(category_encoding="code"))
    frame = pd.DataFrame({"n": [2, 2], "s": ["a", "a"], "d": [DAYS[0]] * 2, "e": [None, None]})
    encoded = encoder.fit_transform(Table.from_native(frame))
    assert encoded.dense.tolist() == [[0.0, 0.0, 0.0]] * 2
    assert [spec.kind for spec in encoder.specs] == ["numeric", "category", "date", "drop"]


def test_a_table_of_empty_columns_is_refused():
    with pytest.raises(InvalidDataError, match=r"must have a column with values, got 2 column"):
        kinds(pd.DataFrame({"a": [None, None], "b": [np.nan, np.nan]}))


def test_constant_where_present_leaves_only_the_indicator():
    frame = pd.DataFrame({"a": [1.0, np.nan, 1.0], "b": [1.0, 2.0, 3.0]})
    encoder = TableEncoder()
    dense = encoder.fit_transform(Table.from_native(frame)).dense
    assert encoder.feature_names == ["b", "a_missing"]
    assert dense[:, 1].tolist() == [0, 1, 0]
    assert kinds(frame, missing_indicators=False) == {"a": "drop", "b": "numeric"}
