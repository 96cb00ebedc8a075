"""feature_importances_: the order is that of scikit-learn's permutation importance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.inspection import permutation_importance

from tabnsm import TabNSMRegressor
from tabnsm.attribution import column_importances
from tabnsm.attribution.importance import RowPairs
from tabnsm.attribution.inputs import input_columns
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

Rows = tuple[pd.DataFrame, np.ndarray, list[str]]


def fast(**options: Any) -> TabNSMRegressor:
    return TabNSMRegressor(**{"preset": "fast", "random_state": 0} | options)


def additive(n_rows: int = 800) -> Rows:
    """Numbers whose parts in the target are known, and as many that are noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=list("abcdefgh"))
    y = 4 * X["e"] + 2 * np.abs(X["b"]) * 1.5 + 1.2 * X["h"] + 0.5 * X["c"] ** 2
    return X, y.to_numpy(), ["e", "b", "h", "c"]


def interacting(n_rows: int = 1200) -> Rows:
    """A product counts for both of its columns, as permuting either of them shows."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=list("abcde"))
    y = 2 * X["a"] * X["b"] + 1.4 * X["c"]
    return X, y.to_numpy(), ["a", "b", "c"]


def mixed(n_rows: int = 800) -> Rows:
    rng = np.random.default_rng(2)
    X = pd.DataFrame(
        {
            "noise": rng.normal(size=n_rows),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n_rows),
            "area": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
            "constant": 1.0,
        }
    )  # fmt: skip
    worth = X["city"].map({"Oslo": 0.0, "Rome": 3.0, "Lima": -4.0})
    days = (X["day"] - X["day"].min()).dt.days
    y = worth + X["area"].fillna(2.0) + np.sin(days / 150) * 0.4
    return X, y.to_numpy(dtype=float), ["city", "area", "day"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [additive, interacting, mixed])
def test_the_order_is_that_of_permutation_importance(make: Any) -> None:
    X, y, known = make()
    # A linear fit would do the work of the networks where the target is nearly linear.
    model = fast(linear_residual=False).fit(X, y)
    assert model.score(X, y) > 0.8
    found = model.feature_importances_
    permuted = permutation_importance(model, X, y, n_repeats=5, random_state=0).importances_mean
    assert found.shape == (X.shape[1],)
    assert found.sum() == pytest.approx(1)
    top = len(known)
    by_us, by_them = (np.argsort(-values, kind="stable")[:top] for values in (found, permuted))
    assert set(X.columns[by_us]) == set(known)
    if make is not interacting:  # where two columns are equal by design
        assert list(X.columns[by_us]) == list(X.columns[by_them]) == known
    assert spearmanr(found[by_them], permuted[by_them]).statistic > 0.4
    assert set(by_us[:2]) == set(by_them[:2])


@pytest.mark.slow
def test_several_targets_count_in_their_own_deviations() -> None:
    X, _, _ = additive()
    Y = pd.DataFrame({"small": 3 * X["e"] + X["b"], "large": 1000 * (2 * X["h"] - X["c"] ** 2)})
    model = fast(linear_residual=False).fit(X, Y)
    permuted = permutation_importance(model, X, Y, n_repeats=3, random_state=0).importances_mean
    found = model.feature_importances_
    by_us, by_them = (np.argsort(-values, kind="stable")[:4] for values in (found, permuted))
    assert list(X.columns[by_us]) == list(X.columns[by_them])
    assert X.columns[by_us[0]] == "e"
    assert set(X.columns[by_us]) == {"e", "b", "h", "c"}


@pytest.mark.slow
def test_wide_tables_are_ranked_by_gradients_first(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, known = additive()
    noise = np.random.default_rng(3).normal(size=(len(X), 24))
    X = X.assign(**{f"n{k}": noise[:, k] for k in range(24)})
    model = fast().fit(X, y)
    encoded = model.encoder_.transform(Table.from_native(X))
    whole = column_importances(model.model_, model.encoder_, model.target_, encoded)
    monkeypatch.setattr("tabnsm.attribution.importance.MAX_EXCHANGED", 3)
    found = column_importances(model.model_, model.encoder_, model.target_, encoded)
    order = [X.columns[k] for k in np.argsort(-found)[:4]]
    assert order == [X.columns[k] for k in np.argsort(-whole)[:4]] == known
    np.testing.assert_allclose(found[:8], whole[:8], atol=0.05)
    assert found.sum() == pytest.approx(1)


def quick(**options: Any) -> TabNSMRegressor:
    small = {"max_epochs": 1, "d_token": 8, "head_width": 16, "random_state": 0, "n_ensemble": 1}
    return TabNSMRegressor(**(small | options))


def test_columns_that_are_left_out_have_none_and_joined_texts_share() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "empty": [None] * 60,
            "title": [f"title {k} {rng.integers(99)}" for k in range(60)],
            "area": rng.normal(size=60),
            "notes": [f"note {k} {rng.integers(99)}" for k in range(60)],
        }
    )
    options = {"text_columns": "joined", "n_text_features": 0, "text_cache": False}
    model = quick(text_encoder=FakeTextEncoder(d_text=6), **options).fit(
        X, X["area"] + rng.normal(size=60)
    )
    empty, title, area, notes = model.feature_importances_
    assert empty == 0
    assert title == notes > 0
    assert empty + title + area + notes == pytest.approx(1)


def test_a_time_limit_that_is_near_leaves_out_rows() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = quick().fit(X, X[:, 0] * X[:, 1])
    encoded = model.encoder_.transform(Table.from_native(X))
    fitted = (model.model_, model.encoder_, model.target_)
    seconds = iter([100.0, 99.0, 2.0, 1.0])

    whole = column_importances(*fitted, encoded)
    ample = column_importances(*fitted, encoded, None, lambda: next(seconds))
    near = column_importances(*fitted, encoded, None, lambda: next(seconds))
    np.testing.assert_array_equal(ample, whole)  # 6 seconds are needed
    assert not np.array_equal(near, whole)
    assert near.sum() == pytest.approx(1)
    drawn = np.random.default_rng(0).choice(200, 128, replace=False)[:21]  # a sixth
    _, of_feature = input_columns(model.encoder_)
    pairs = RowPairs(model.model_, model.target_, encoded, drawn, of_feature)
    expected = np.array([pairs.exchange(k) for k in range(3)])
    np.testing.assert_allclose(near, expected / expected.sum())


def test_saved_with_the_model(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = quick().fit(X, X[:, 0] * X[:, 1])
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
    del loaded.feature_importances_  # as after loading a file of an earlier version
    loaded.save(tmp_path / "again.safetensors")
    again = TabNSMRegressor.load(tmp_path / "again.safetensors")
    assert not hasattr(again, "feature_importances_")


def test_a_model_that_ignores_its_columns_has_zeros() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = quick(linear_residual=False).fit(X, X[:, 0] * X[:, 1])
    with torch.no_grad():
        for parameter in model.model_.parameters():
            parameter.zero_()
    encoded = model.encoder_.transform(Table.from_native(X))
    found = column_importances(model.model_, model.encoder_, model.target_, encoded)
    np.testing.assert_array_equal(found, 0)
