"""Validation rows: at random, by group, by time."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.errors import InvalidDataError
from tabnsm.training.split import row_labels, validation_mask


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(n_rows=st.integers(4, 200), fraction=st.floats(0.01, 0.99), seed=st.integers(0, 9))
def test_random_split_has_the_asked_share(n_rows: int, fraction: float, seed: int) -> None:
    mask = validation_mask(n_rows, fraction, generator(seed))
    assert mask.sum() == min(max(1, round(fraction * n_rows)), n_rows - 2)


@given(
    labels=st.lists(st.integers(0, 5), min_size=4, max_size=60).filter(lambda v: len(set(v)) > 1),
    fraction=st.floats(0.05, 0.95),
    seed=st.integers(0, 9),
)
def test_groups_stay_whole(labels: list[int], fraction: float, seed: int) -> None:
    groups = row_labels(labels, len(labels), "validation_groups")
    mask = validation_mask(len(labels), fraction, generator(seed), groups=groups)
    assert 0 < mask.sum() < len(labels)
    array = np.array(labels)
    assert not set(array[mask]) & set(array[~mask])


@given(
    times=st.lists(st.integers(0, 9), min_size=4, max_size=60).filter(lambda v: len(set(v)) > 1),
    fraction=st.floats(0.05, 0.95),
)
def test_the_latest_rows_validate(times: list[int], fraction: float) -> None:
    labels = row_labels(times, len(times), "validation_time")
    mask = validation_mask(len(times), fraction, generator(), time=labels)
    array = np.array(times)
    assert array[mask].min() > array[~mask].max()


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "c", "a"],
        [date(2024, 1, 2), date(2024, 1, 1), date(2024, 1, 3), date(2024, 1, 1)],
        np.array(["2024-01-02", "2024-01-01", "2024-01-03", "2024-01-01"], dtype="datetime64[D]"),
    ],
)
def test_labels_of_any_sortable_kind(values: Any) -> None:
    assert row_labels(values, 4, "validation_time").tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2], r"one value per row \(4\), got shape \(2,\)"),
        ([1.0, np.nan, 2.0, 3.0], "must not have missing values, got 1"),
        (["a", None, "b", "c"], "must not have missing values, got 1"),
        (np.array([1, "a", 2, "b"], dtype=object), "one kind that can be sorted"),
    ],
)
def test_bad_labels_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        row_labels(values, 4, "validation_groups")


def test_too_few_rows_or_groups() -> None:
    with pytest.raises(InvalidDataError, match=r"At least 4 rows .* got n_samples = 3"):
        validation_mask(3, 0.1, generator())
    with pytest.raises(InvalidDataError, match="at least 2 distinct values"):
        validation_mask(4, 0.1, generator(), groups=np.zeros(4))
