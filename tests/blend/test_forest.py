from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from tabnsm.blend.extraction import boosted_trees
from tabnsm.blend.forest import Forest
from tests.oracles.trees import leaf_of

NODES = ("feature", "threshold", "left", "right", "missing_left", "category_set", "categories")


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 12, 300), rng.normal(size=(300, 3))]).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.fixture(scope="module")
def forest(x: np.ndarray) -> Forest:
    y = np.nan_to_num(x[:, 1]) + np.isin(x[:, 0], [1, 4, 7]) * 2 + np.isnan(x[:, 2])
    model = HistGradientBoostingRegressor(
        max_iter=6, max_leaf_nodes=8, categorical_features=[0], early_stopping=False
    )
    return boosted_trees(model.fit(x, y))


def test_a_forest_predicts_as_its_nodes_say(forest: Forest, x: np.ndarray) -> None:
    arrays = [getattr(forest, name).tolist() for name in NODES]
    expected = [
        forest.start
        + sum(
            float(forest.value[leaf_of(row, *arrays, root=int(root))])  # type: ignore[call-arg]
            for root in forest.roots
        )
        for row in x.tolist()
    ]
    np.testing.assert_allclose(forest.predict(x), expected, rtol=1e-12)


def test_a_row_depends_on_no_other(forest: Forest, x: np.ndarray) -> None:
    whole = forest.predict(x)
    for size in (1, 2, 7):
        np.testing.assert_array_equal(forest.predict(x[:size]), whole[:size])
    assert forest.predict(x[:0]).shape == (0,)


def test_tiles_do_not_change_a_bit(
    forest: Forest, x: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = forest.predict(x)
    monkeypatch.setattr("tabnsm.blend.forest._TILE_VALUES", 100)
    np.testing.assert_array_equal(forest.predict(x), whole)


def test_the_state_is_the_forest(forest: Forest, x: np.ndarray) -> None:
    tensors, facts = forest.to_state()
    again = Forest.from_state(tensors, facts)
    np.testing.assert_array_equal(again.predict(x), forest.predict(x))
    assert tensors["categories"].shape[1] == 32


def test_the_first_trees(forest: Forest, x: np.ndarray) -> None:
    first = forest.first(2)
    assert first.n_trees == 2
    expected = forest.start + forest.leaf_values(x)[:2].astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(first.predict(x), expected, rtol=1e-12)
    np.testing.assert_array_equal(forest.first(6).predict(x), forest.predict(x))


def test_joined_and_scaled(forest: Forest, x: np.ndarray) -> None:
    twice = Forest.join([forest, forest])
    expected = 2 * forest.predict(x) - forest.start
    np.testing.assert_allclose(twice.predict(x), expected, rtol=1e-6)
    np.testing.assert_allclose(forest.scaled(0.5).predict(x), forest.predict(x) / 2, rtol=1e-6)


def test_a_node_that_leads_nowhere_is_refused(forest: Forest) -> None:
    tensors, facts = forest.to_state()
    tensors["left"] = tensors["left"] + 1000
    with pytest.raises(ValueError, match="left of a tree must be below"):
        Forest.from_state(tensors, facts)
    with pytest.raises(ValueError, match="depth of trees must be below"):
        Forest.from_state(tensors, facts | {"depth": 10**9})
