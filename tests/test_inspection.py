"""scikit-learn's tools for looking into a model work as they are."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

from tabnsm import TabNSMRegressor


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 500
    return pd.DataFrame(
        {
            "area": rng.uniform(-1, 1, size=n),
            "noise": rng.normal(size=n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "kind": pd.Categorical(rng.choice(["flat", "house"], n)),
            "sold": pd.date_range("2024-01-01", periods=n, freq="D"),
        }
    )


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TabNSMRegressor:
    y = 3 * frame["area"] ** 2 + 2 * (frame["city"] == "Oslo") + (frame["kind"] == "flat")
    return TabNSMRegressor(preset="fast", random_state=0).fit(frame, y)


@pytest.fixture(autouse=True)
def _no_window() -> Any:
    mpl.use("Agg")
    yield
    from matplotlib import pyplot as plt

    plt.close("all")


CATEGORIES = {"categorical_features": ["city", "kind"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "options"),
    [
        (["area", "noise"], {}),
        (["area"], {"kind": "both", "subsample": 20}),
        ([("area", "noise")], {"grid_resolution": 6}),
        (["city", "kind"], CATEGORIES),
        ([("city", "kind")], CATEGORIES),
        (["area", "city"], CATEGORIES),
    ],
)
def test_partial_dependence_is_drawn(
    model: TabNSMRegressor, frame: pd.DataFrame, features: Any, options: dict[str, Any]
) -> None:
    options = {"grid_resolution": 15} | options
    display = PartialDependenceDisplay.from_estimator(model, frame, features, **options)
    assert len(display.pd_results) == len(features)


@pytest.mark.slow
def test_partial_dependence_is_the_known_one(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    found = partial_dependence(model, frame, ["area"], grid_resolution=15)
    grid, curve = found["grid_values"][0], found["average"][0]
    expected = 3 * grid**2
    assert np.abs((curve - curve.mean()) - (expected - expected.mean())).max() < 0.5
    found = partial_dependence(model, frame, ["city"], categorical_features=["city"])
    by_city = dict(zip(found["grid_values"][0], found["average"][0], strict=True))
    assert by_city["Oslo"] - by_city["Rome"] == pytest.approx(2, abs=0.3)
    assert by_city["Lima"] - by_city["Rome"] == pytest.approx(0, abs=0.3)


@pytest.mark.slow
def test_arrays_work_too() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    small = {"max_epochs": 3, "random_state": 0, "n_ensemble": 1}
    model = TabNSMRegressor(**small).fit(X, X[:, 0] * X[:, 1])
    display = PartialDependenceDisplay.from_estimator(model, X, [0, (1, 2)], grid_resolution=6)
    assert len(display.pd_results) == 2
