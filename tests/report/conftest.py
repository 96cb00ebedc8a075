"""A fitted model of every kind of column but text, and rows that it has not seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor

NASTY = "</script><img src=x onerror=alert(1)>"


def make_rows(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{k}": rng.normal(size=n_rows) for k in range(4)})
    X["city <b>"] = rng.choice(["Oslo", "Rome", NASTY], n_rows)
    X["sold"] = pd.date_range("2024-01-01", periods=n_rows, freq="D")
    X["empty"] = None
    X.loc[::7, "x1"] = np.nan
    y = 3 * X["x0"] ** 2 + 4 * (X["city <b>"] == "Oslo") + 20
    return X, y.rename("price")


def two_targets(X: pd.DataFrame, y: pd.Series) -> pd.DataFrame:
    """The price, and a target of other columns that every fourth row lacks."""
    Y = pd.DataFrame({"price": y, "area": 5 * X["x3"] + 2 * X["x2"]})
    Y.loc[::4, "area"] = np.nan
    return Y


@pytest.fixture(scope="session")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    return make_rows(260)


@pytest.fixture(scope="session")
def model(rows: tuple[pd.DataFrame, pd.Series]) -> TabNSMRegressor:
    X, y = rows
    options = {"max_epochs": 4, "random_state": 0, "n_ensemble": 2, "linear_residual": False}
    return TabNSMRegressor(preset="fast", **options).fit(X[:200], y[:200])


@pytest.fixture(scope="session")
def several(rows: tuple[pd.DataFrame, pd.Series]) -> TabNSMRegressor:
    """Of two targets."""
    options = {"max_epochs": 8, "random_state": 0, "linear_residual": False}
    model = TabNSMRegressor(preset="fast", **options)
    return model.fit(rows[0][:200], two_targets(*rows)[:200])
