"""What ships, as it ships: no option but the seed and, where time matters, fewer epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from tabnsm import TabNSMRegressor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rows() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=160),
            "b": rng.normal(size=160),
            "c": rng.choice(["x", "y", "z"], 160),
        }
    )
    frame.loc[::11, "b"] = np.nan
    return frame, frame["a"] * 2 + (frame["c"] == "x") + 0.1 * rng.normal(size=160)


@pytest.fixture(scope="module")
def model(rows: tuple[pd.DataFrame, pd.Series]) -> TabNSMRegressor:
    return TabNSMRegressor(random_state=0).fit(*rows)


def test_a_small_table_gets_an_ensemble_that_learns(model, rows) -> None:
    assert len(model.histories_) == 3
    assert model.score(*rows) > 0.97
    single = [history.best.validation_rmse for history in model.histories_]
    assert model.validation_rmse_ < np.mean(single)


def test_it_saves_and_loads_to_the_same_bits(model, rows, tmp_path: Path) -> None:
    model.save(tmp_path / "model.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "model.safetensors")
    assert np.array_equal(loaded.predict(rows[0]), model.predict(rows[0]))


def test_same_seed_same_bits(rows) -> None:
    first, second = (TabNSMRegressor(max_epochs=3, random_state=1).fit(*rows) for _ in range(2))
    assert np.array_equal(first.predict(rows[0]), second.predict(rows[0]))


def test_it_can_be_cross_validated(rows) -> None:
    assert cross_val_score(TabNSMRegressor(max_epochs=15, random_state=0), *rows, cv=2).min() > 0.8
