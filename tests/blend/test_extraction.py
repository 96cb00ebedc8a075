from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

from tabnsm.blend.extraction import averaged_trees, boosted_trees


def make_rows(n: int, seed: int, missing: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, 255, n), rng.integers(0, 3, n)])
    numbers = rng.normal(size=(n, 4)) * 10.0 ** np.arange(-3, 5, 2)
    x = np.column_stack([codes, numbers]).astype(np.float32)
    x[rng.random(x.shape) < missing] = np.nan
    x[:255, 0] = np.arange(255)  # all codes, so that scikit-learn leaves them as they are
    y = np.nan_to_num(x[:, 2]) * 1e3 + 3 * (np.nan_to_num(x[:, 0]) % 3) + np.isnan(x[:, 4])
    return x, y


@pytest.mark.parametrize("n_categories", [0, 2])
@pytest.mark.parametrize("options", [{}, {"max_leaf_nodes": 4}, {"max_features": 0.5}])
def test_boosted_trees_predict_as_scikit_learn_does(
    n_categories: int, options: dict[str, float]
) -> None:
    x, y = make_rows(900, 0)
    model = HistGradientBoostingRegressor(
        max_iter=40,
        categorical_features=list(range(n_categories)) or None,
        early_stopping=False,
        random_state=0,
        **options,
    ).fit(x, y, sample_weight=np.linspace(0.5, 2, len(y)))
    forest = boosted_trees(model)
    new, _ = make_rows(500, 1, missing=0.3)
    np.testing.assert_allclose(forest.predict(new), model.predict(new), rtol=1e-5, atol=1e-5)
    assert (len(forest.categories) > 0) == (n_categories > 0)


def test_thresholds_that_are_values() -> None:
    """A float32 on either side of a threshold goes the same way as in float64."""
    x = np.repeat(np.float32([1.0, np.nextafter(np.float32(1), np.float32(2)), 3.0]), 400)[:, None]
    y = np.repeat([0.0, 1.0, 2.0], 400)
    model = HistGradientBoostingRegressor(max_iter=5, early_stopping=False).fit(x, y)
    np.testing.assert_allclose(boosted_trees(model).predict(x), model.predict(x), rtol=1e-6)


def test_a_constant_target_is_leaves_alone() -> None:
    x = np.zeros((50, 1), np.float32)
    model = HistGradientBoostingRegressor(max_iter=3, early_stopping=False).fit(x, np.full(50, 2.0))
    np.testing.assert_allclose(boosted_trees(model).predict(x[:2]), 2.0)


def test_random_trees_predict_as_scikit_learn_does() -> None:
    x, y = make_rows(600, 0, missing=0.0)
    model = ExtraTreesRegressor(n_estimators=9, min_samples_leaf=3, random_state=0).fit(x, y)
    forest = averaged_trees(model)
    new, _ = make_rows(300, 1, missing=0.0)
    np.testing.assert_allclose(forest.predict(new) / 9, model.predict(new), rtol=1e-5, atol=1e-6)
    later = averaged_trees(model, first=6)
    assert (forest.n_trees, later.n_trees) == (9, 3)
