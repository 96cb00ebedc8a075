from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tabnsm.blend.growing import TreeRows, grow_boosted, grow_extra

LEAVES = {"min_samples_leaf": 5}
PURE = {"min_samples_leaf": 1, "max_leaf_nodes": 200}


@pytest.fixture(scope="module")
def rows() -> TreeRows:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 5, 600), rng.normal(size=(600, 2))]).astype(np.float32)
    y = x[:, 1] + (x[:, 0] == 2) + rng.normal(size=600)
    y -= y.mean()
    return TreeRows(x[:400], y[:400], None, x[400:], y[400:], None, n_categories=1, seed=0)


def test_as_many_trees_as_validate_best(rows: TreeRows) -> None:
    forest = grow_boosted(rows, lambda: math.inf, learning_rate=0.3, patience=20)

    def error(n_trees: int) -> float:
        return float(np.mean((forest.first(n_trees).predict(rows.x_val) - rows.y_val) ** 2))

    errors = [error(k + 1) for k in range(forest.n_trees)]
    assert int(np.argmin(errors)) == forest.n_trees - 1
    assert errors[-1] < np.var(rows.y_val)


def test_no_more_trees_than_asked_for(rows: TreeRows) -> None:
    slow = {"learning_rate": 1e-4, "max_leaf_nodes": 4}
    assert grow_boosted(rows, lambda: math.inf, max_trees=60, **slow).n_trees <= 60


def test_no_time_is_the_first_stage(rows: TreeRows) -> None:
    assert 1 <= grow_boosted(rows, lambda: 0.0, learning_rate=1e-3).n_trees <= 25
    assert grow_extra(rows, lambda: 0.0, n_trees=64).n_trees == 4


def test_random_trees_leave_codes_out(rows: TreeRows) -> None:
    forest = grow_extra(rows, lambda: math.inf, n_trees=8)
    assert forest.n_trees == 8
    changed = rows.x_val.copy()
    changed[:, 0] = np.nan
    np.testing.assert_array_equal(forest.predict(changed), forest.predict(rows.x_val))
    assert np.corrcoef(forest.predict(rows.x_val), rows.y_val)[0, 1] > 0.5


def test_random_trees_have_the_shape_that_validates_best(rows: TreeRows) -> None:
    def n_nodes(rows: TreeRows, shapes: list[dict[str, int]]) -> int:
        return len(grow_extra(rows, lambda: math.inf, n_trees=20, shapes=shapes).value)

    # Noise asks for large leaves, steps without noise for pure ones.
    noisy = replace(rows, y=rows.y * 5, y_val=np.roll(rows.y_val * 5, 1))
    assert n_nodes(noisy, [PURE, LEAVES]) == n_nodes(noisy, [LEAVES])
    steps = replace(rows, y=_steps(rows.x), y_val=_steps(rows.x_val))
    assert n_nodes(steps, [LEAVES, PURE]) == n_nodes(steps, [PURE])


def test_without_time_only_the_first_shape_is_grown(rows: TreeRows) -> None:
    forest = grow_extra(rows, lambda: 0.0, shapes=[LEAVES, PURE])
    assert len(forest.value) == len(grow_extra(rows, lambda: 0.0, shapes=[LEAVES]).value)


def _steps(x: np.ndarray) -> np.ndarray:
    return np.floor(3 * x[:, 1]).astype(float)


def test_weights_reach_the_trees(rows: TreeRows) -> None:
    heavy = np.where(rows.y > 0, 1000.0, 1.0)
    weighted = replace(rows, weight=heavy)
    for grow in (
        lambda r: grow_boosted(r, lambda: 0.0, learning_rate=0.3),
        lambda r: grow_extra(r, lambda: 0.0),
    ):
        assert grow(weighted).predict(rows.x_val).mean() > grow(rows).predict(rows.x_val).mean()


def test_the_same_seed_is_the_same_trees(rows: TreeRows) -> None:
    options = {"learning_rate": 0.1, "max_features": 0.5, "max_trees": 50}
    first, second = (grow_boosted(rows, lambda: math.inf, **options) for _ in range(2))
    np.testing.assert_array_equal(first.predict(rows.x), second.predict(rows.x))
