from __future__ import annotations

import numpy as np

from tabnsm.report.errors_section import N_GROUPS, _by_number


def test_few_values_have_a_group_each() -> None:
    terms = np.array([36.0] * 95 + [60.0] * 5 + [np.nan])
    groups = _by_number(terms, np.arange(101.0))
    assert [(group["label"], group["n"]) for group in groups] == [
        ("36", 95),
        ("60", 5),
        ("missing", 1),
    ]


def test_many_values_are_in_groups_of_about_equal_size() -> None:
    groups = _by_number(np.arange(200.0), np.zeros(200))
    assert [group["n"] for group in groups] == [200 // N_GROUPS] * N_GROUPS
    assert (groups[0]["label"], groups[-1]["label"]) == ("0 to 19", "180 to 199")


def test_a_frequent_value_among_many() -> None:
    values = np.r_[np.zeros(150), np.arange(1.0, 51.0)]
    groups = _by_number(values, np.ones(200))
    assert groups[0]["label"].startswith("0")
    assert groups[0]["n"] >= 150  # equal values are never apart
    assert len(groups) == 3
    assert sum(group["n"] for group in groups) == 200


def test_nothing_but_missing_values() -> None:
    assert [g["label"] for g in _by_number(np.full(3, np.nan), np.ones(3))] == ["missing"]
