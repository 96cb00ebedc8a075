"""Distinct strings in files are those that are found in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabnsm.tables import stored
from tabnsm.tables.number_format import parse_numbers
from tabnsm.tables.stored import StoredStrings, choose, in_parts, parts_of, store_distinct
from tabnsm.work_folder import WorkFolder

CELLS = st.none() | st.text(max_size=3) | st.sampled_from(["a", "b", " ", "\u2003"])


@settings(max_examples=50)
@given(st.lists(st.lists(CELLS, max_size=8), max_size=6), st.booleans())
def test_codes_and_strings_in_order_of_their_first_row(batches, keep_blank):
    arrays = [pa.array(batch, pa.string()) for batch in batches]
    rows = [value for batch in batches for value in batch]
    position_of: dict[str, int] = {}
    expected = [
        -1
        if value is None or not (keep_blank or value.strip())
        else position_of.setdefault(value, len(position_of))
        for value in rows
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = WorkFolder(Path(name))
        codes, values = store_distinct(lambda: arrays, len(rows), folder, keep_blank=keep_blank)
        assert codes.tolist() == expected
        assert list(values) == list(position_of)
        assert not list(folder.path.iterdir())  # what is mapped stays until it is let go of


def make(values: list[str]) -> StoredStrings:
    return StoredStrings(pa.array([*values, ""], pa.large_string()))


def test_a_sequence_of_strings():
    strings = make(["a", "b", "c"])
    assert len(strings) == 3
    assert (strings[0], strings[-1], strings[1:]) == ("a", "c", ["b", "c"])
    with pytest.raises(IndexError):
        strings[3]
    some = strings.take(np.array([2, -1, 0]))
    assert (list(some), some[:1], some[1]) == (["c", "", "a"], ["c"], "")
    assert list(choose(some, np.array([2, 0]))) == ["a", "c"]
    assert list(choose(["x", "y"], np.array([1]))) == ["y"]


def test_parts_give_what_the_whole_gives(monkeypatch):
    values = [f"${k}" for k in range(10)] + ["no"]
    whole = parse_numbers(values, stored_format())
    monkeypatch.setattr(stored, "PART", 3)
    assert [len(part) for part in parts_of(make(values))] == [3, 3, 3, 2]
    for strings in (values, make(values)):
        found = parse_numbers(strings, stored_format())
        assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(whole, found, strict=True))
    lengths = in_parts(lambda part: np.array([len(value) for value in part]))
    assert lengths(values).tolist() == [2] * 11


def stored_format():
    from tabnsm.tables.number_format import NumberFormat

    return NumberFormat(prefix="$")
