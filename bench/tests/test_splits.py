from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabnsm.errors import InvalidDataError
from tabnsm.metrics import regression_metrics
from tabnsm_bench.datasets import load
from tabnsm_bench.splits import paper_split, subset


@pytest.mark.parametrize("n_rows", [10, 11, 999])
def test_every_row_has_one_role(n_rows: int) -> None:
    split = paper_split(n_rows, 3)
    together = np.concatenate([split.train, split.validation, split.test])
    assert sorted(together) == list(range(n_rows))
    assert len(split.test) == int(np.ceil(0.2 * n_rows))
    assert len(split.validation) == int(np.ceil(0.1 * (n_rows - len(split.test))))


def test_it_is_the_split_that_anyone_would_draw_with_scikit_learn() -> None:
    x = np.arange(500)
    rest, test = train_test_split(x, test_size=0.2, random_state=42)
    train, validation = train_test_split(rest, test_size=0.1, random_state=42)
    split = paper_split(500)
    for ours, theirs in zip(
        (split.train, split.validation, split.test), (train, validation, test), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_the_fingerprint_depends_on_the_test_rows() -> None:
    assert paper_split(100, 1).test_sha256 == paper_split(100, 1).test_sha256
    assert len({paper_split(100, state).test_sha256 for state in range(5)}) == 5


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="at least 10 rows, got 9"):
        paper_split(9)


def test_subsets_grow_and_repeat() -> None:
    chosen = [set(subset(50, size, 4)) for size in (5, 20, 50)]
    assert chosen[0] < chosen[1] < chosen[2] == set(range(50))
    np.testing.assert_array_equal(subset(50, 20, 4), subset(50, 20, 4))
    assert set(subset(50, 20, 4)) != set(subset(50, 20, 5))


@pytest.mark.parametrize(
    ("model", "paper"),
    [
        (LinearRegression(), 9.277),
        (make_pipeline(StandardScaler(), KNeighborsRegressor(5)), 3.719),
    ],
)
def test_the_papers_figures_on_cp(data_dir: Path, model: object, paper: float) -> None:
    """Fitted on the whole 80 %, two methods without settings give the paper's own figures.

    The paper cuts digits off instead of rounding: 9.2777 is printed as 9.277.
    """
    table = load("CP", data_dir)
    split = paper_split(len(table.target))
    x = table.frame.to_numpy(dtype=float)
    rest = np.concatenate([split.train, split.validation])
    model.fit(x[rest], table.target[rest])  # type: ignore[attr-defined]
    predicted = model.predict(x[split.test])  # type: ignore[attr-defined]
    rmse = regression_metrics(table.target[split.test], predicted)["rmse"]
    assert math.floor(rmse * 1000) / 1000 == paper
