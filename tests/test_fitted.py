from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tabnsm import TabNSMRegressor
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table


class Mine(TabNSMRegressor):
    """A subclass without options of its own."""


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(120, 3))
    return X, X[:, 0] * X[:, 1]


@pytest.fixture(scope="module")
def model(rows: tuple[np.ndarray, np.ndarray]) -> TabNSMRegressor:
    return TabNSMRegressor(max_epochs=2, d_token=8, n_ensemble=2, random_state=0).fit(*rows)


def test_a_prediction_is_the_networks_and_the_target_model(
    model: TabNSMRegressor, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    encoded = model.encoder_.transform(Table.from_native(rows[0]))
    device = next(model.model_.parameters()).device
    standard = predict_rows(model.model_, encoded, device)
    assert standard.shape == (120, 1)
    prediction = model.predict(rows[0])
    assert (prediction.shape, prediction.dtype) == ((120,), np.float64)
    np.testing.assert_array_equal(prediction, model.target_.predict(standard, encoded)[:, 0])


def test_a_file_is_read_as_the_class_that_is_asked_for(
    model: TabNSMRegressor, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    model.save(tmp_path / "m.safetensors")
    loaded = Mine.load(tmp_path / "m.safetensors")
    assert type(loaded) is Mine
    np.testing.assert_array_equal(loaded.predict(rows[0]), model.predict(rows[0]))
    assert loaded.n_iter_ == model.n_iter_ == 2


def test_names_of_an_earlier_fit_are_forgotten(rows: tuple[np.ndarray, np.ndarray]) -> None:
    import pandas as pd

    X, y = rows
    model = TabNSMRegressor(max_epochs=1, d_token=8, n_ensemble=1, random_state=0)
    model.fit(pd.DataFrame(X, columns=list("abc")), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("method", ["predict", "explain", "save"])
def test_nothing_is_done_before_a_fit(method: str, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        getattr(TabNSMRegressor(), method)(tmp_path / "m.safetensors")
