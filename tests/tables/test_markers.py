from __future__ import annotations

import numpy as np
import pytest

from tabnsm.tables.markers import frequent_values, is_marker, mostly_readable, pick


@pytest.mark.parametrize(
    "text", ["?", "-", "--", ".", "*", "NA", "n/a", "NaN", "None", "null", "nil", "Missing",
             " UNKNOWN ", "not available", "#N/A", "<NA>", "#DIV/0!"],
)  # fmt: skip
def test_markers_in_any_case(text):
    assert is_marker([text]).all()


@pytest.mark.parametrize("text", ["0", "no", "yes", "-1", "n", "abc", "unknown city", "a"])
def test_ordinary_strings_are_no_markers(text):
    assert not is_marker([text]).any()


def accepted(readable: list[int], markers: list[int], others: list[int]) -> bool:
    """Whether a column is accepted whose distinct strings occur this often."""
    counts = np.array(readable + markers + others)
    kinds = np.repeat([0, 1, 2], [len(readable), len(markers), len(others)])
    return mostly_readable(kinds == 0, kinds == 1, counts, len(readable))


@pytest.mark.parametrize(
    ("readable", "markers", "others", "expected"),
    [
        ([1], [], [], True),
        ([5, 5], [10], [], True),
        ([5, 5], [11], [], False),
        ([9], [1], [], False),
        ([98] * 10, [], [20], True),
        ([98] * 10, [], [21], False),
        ([98] * 10, [500], [20], True),
        ([98] * 8, [], [1], False),
        ([98] * 8, [5], [], True),
        ([], [3], [], False),
    ],
)
def test_how_many_strings_may_be_unreadable(readable, markers, others, expected):
    assert accepted(readable, markers, others) is expected


def test_frequent_values_come_first_and_are_no_markers():
    values = ["?", "rare", *[f"v{k}" for k in range(50)]]
    counts = np.array([900, 1, *range(50)])
    found, how_often = frequent_values(values, counts)
    assert found == [f"v{k}" for k in range(49, 29, -1)]
    assert how_often.tolist() == list(range(49, 29, -1))
    assert pick(values[:3], np.array([True, False, True])) == ["?", "v0"]
