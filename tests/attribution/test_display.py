"""What explanations say beside their numbers, and that shap draws them."""

from __future__ import annotations

import builtins
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tabnsm import MissingExtraError, TabNSMRegressor
from tests.fakes import FakeTextEncoder


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame(
        {
            "area": rng.normal(size=n),
            "empty": [None] * n,
            "price": [f"${k + 1},000.00" for k in range(n)],
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "sold": pd.date_range("2024-01-01", periods=n, freq="3D"),
            "title": [f"title {k} {rng.integers(99)}" for k in range(n)],
            "notes": [f"note {k} {rng.integers(99)}" for k in range(n)],
        }
    )
    table.loc[::7, "area"] = np.nan
    table.loc[::5, "city"] = None
    table.loc[3, "title"] = None
    return table


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TabNSMRegressor:
    y = frame["area"].fillna(0) * 2 + (frame["city"] == "Oslo") + np.arange(90) / 30
    small = {"max_epochs": 2, "d_token": 8, "head_width": 16, "random_state": 0, "n_ensemble": 1}
    options = {"text_columns": "joined", "n_text_features": 0, "text_cache": False}
    return TabNSMRegressor(text_encoder=FakeTextEncoder(8), **small, **options).fit(frame, y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "shuffled"])
def test_values_stand_beside_their_columns(
    model: TabNSMRegressor, frame: pd.DataFrame, kind: str
) -> None:
    rows = {
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "shuffled": frame[frame.columns[::-1]].assign(more=1),
    }[kind]
    explanation = model.explain(rows, n_steps=1)
    assert explanation.feature_names == ["area", "price", "city", "sold", "title + notes"]
    data = explanation.data
    assert data.shape == explanation.values.shape == (90, 5)
    np.testing.assert_array_equal(data[:, 0].astype(float), frame["area"])
    assert data[:3, 1].tolist() == [1000.0, 2000.0, 3000.0]
    assert data[0, 2] is None
    assert data[1, 2] == frame["city"][1]
    assert data[1, 3] == "2024-01-04"
    assert data[1, 4] == f"{frame['title'][1]} {frame['notes'][1]}"
    assert data[3, 4] == frame["notes"][3]


def test_rows_can_be_picked(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    explanation = model.explain(frame, n_steps=1)
    assert len(explanation) == 90
    for rows in (slice(3, 9), [4, 2], np.arange(90) % 2 == 0, 5, -1):
        part = explanation[rows]
        places = np.atleast_1d(np.arange(90)[rows])
        assert len(part) == len(places)
        np.testing.assert_array_equal(part.values, explanation.values[places])
        np.testing.assert_array_equal(part.base_values, explanation.base_values[places])
        np.testing.assert_array_equal(part.selected_blocks, explanation.selected_blocks[places])
        assert part.data[:, 3].tolist() == explanation.data[places, 3].tolist()


@pytest.mark.slow
def test_shap_draws_it(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's own, about matplotlib and numpy
        shap = pytest.importorskip("shap", reason="shap is not installed")
        from matplotlib import pyplot as plt

        explanation = model.explain(frame, n_steps=2)
        theirs = explanation.to_shap()
        assert isinstance(theirs, shap.Explanation)
        np.testing.assert_array_equal(theirs.values, explanation.values)
        assert theirs.display_data[1, 2] == frame["city"][1]
        total = theirs.base_values + theirs.values.sum(axis=1)
        np.testing.assert_allclose(total, model.predict(frame), rtol=1e-5, atol=1e-5)
        for draw in (shap.plots.waterfall, shap.plots.bar):
            assert draw(theirs[1], show=False) is not None
            plt.close("all")
        for draw in (shap.plots.beeswarm, shap.plots.bar, shap.plots.heatmap, shap.plots.violin):
            draw(theirs, show=False)
            plt.close("all")
        shap.plots.scatter(theirs[:, "area"], show=False)
        shap.plots.beeswarm(model.explain(frame, method="gradient").to_shap(), show=False)
        plt.close("all")


def test_shap_is_an_extra(
    model: TabNSMRegressor, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def no_shap(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "shap":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_shap)
    with pytest.raises(MissingExtraError, match=r"tabnsm\[shap\]"):
        model.explain(frame[:1], n_steps=1).to_shap()
