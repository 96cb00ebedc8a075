"""Distinct joined strings, in memory and in files."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tabnsm.columns.joined import all_distinct, join_texts
from tabnsm.tables.column import Column, Factor
from tabnsm.tables.objects import from_objects
from tabnsm.tables.stored import StoredStrings, store_distinct
from tabnsm.work_folder import WorkFolder

CELLS = st.sampled_from([None, "", " ", "a", "b", "a b", "é"])
ROWS = st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1)


def in_memory(values: list[str | None]) -> Factor:
    return Column("c", from_objects("c", values)).to_factor()


def arrays(values: list[str | None]) -> list[pa.Array]:
    return [pa.array(values, pa.string())]


@given(ROWS)
def test_rows_are_joined_with_one_space(rows):
    factors = [in_memory(list(values)) for values in zip(*rows, strict=True)]
    texts, index = join_texts(factors)
    cells = [[(value or "").strip() and value for value in row] for row in rows]
    assert [texts[k] for k in index] == [" ".join(row) for row in cells]
    assert len(set(texts)) == len(texts)


def test_many_distinct_columns_do_not_overflow_the_key():
    values = [f"v{k}" for k in range(3000)]
    texts, index = join_texts([in_memory(values)] * 9)
    assert len(texts) == 3000
    assert index.tolist() == list(range(3000))


@settings(max_examples=30)
@given(ROWS)
def test_strings_in_files_are_joined_as_those_in_memory(rows):
    columns = [list(values) for values in zip(*rows, strict=True)]
    factors = [in_memory(values) for values in columns]
    with tempfile.TemporaryDirectory() as name:
        folder = WorkFolder(Path(name))
        stored = [
            Factor(*store_distinct(partial(arrays, values), len(rows), folder))
            for values in columns
        ]
        lists = []
        for group, same in (([stored[0]], [factors[0]]), ([factors[0], *stored[1:]], factors)):
            texts, index = join_texts(group, folder)
            expected, expected_index = join_texts(same)
            assert isinstance(texts, StoredStrings)
            assert list(texts) == expected
            assert (index == expected_index).all()
            lists.append((texts, expected))
        found, places = all_distinct([texts for texts, _ in lists], folder)
        expected, expected_places = all_distinct([texts for _, texts in lists], None)
        assert list(found) == expected
        assert all(map(np.array_equal, places, expected_places))
