"""Every method that runs in this interpreter fits a small table, better than its mean."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import Ridge

from bench.tests.baselines.conftest import make_table
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines import common
from tabnsm_bench.baselines.catalog import BASELINES, make
from tabnsm_bench.baselines.common import Columns, rmse
from tabnsm_bench.baselines.scikit_learn import Classical
from tabnsm_bench.protocol import Prepared

# Smaller than the defaults, so that the tests stay quick.
OPTIONS: dict[str, dict[str, Any]] = {
    "linear-regression": {},
    "knn-5": {},
    "lasso": {},
    "ridge": {},
    "svr-linear": {},
    "svr-rbf": {},
    "random-forest": {"n_estimators": 20},
    "extratrees": {"n_estimators": 20},
    "catboost": {"iterations": 80, "learning_rate": 0.1},
    "lightgbm": {"n_estimators": 100},
    "xgboost": {"n_estimators": 100},
    "mlp": {"d_block": 32, "max_epochs": 12},
    "resnet": {"d_block": 32, "max_epochs": 12},
    "mlp-plr": {"d_block": 32, "max_epochs": 12},
    "tabm": {"d_block": 32, "k": 4, "max_epochs": 12},
    "ft-transformer": {"n_blocks": 1, "d_block": 32, "learning_rate": 2e-3, "max_epochs": 8},
    "dcn-v2": {"d_block": 32, "max_epochs": 12},
    "snn": {"d_block": 32, "max_epochs": 12},
    "grownet": {"d_hidden": 16, "n_stages": 5},
    "t2g-former": {"n_layers": 1, "d_token": 16, "n_heads": 2, "max_epochs": 12},
    "amformer": {"n_layers": 1, "d_token": 16, "n_heads": 2, "max_epochs": 12},
    "ptarl": {"d_block": 64, "max_epochs": 16},
    "tabptm": {"d_block": 64, "max_epochs": 12},
}
OWN = ("t2g-former", "amformer", "ptarl", "tabptm")
EPOCHS = ("mlp", "resnet", "mlp-plr", "tabm", "ft-transformer", "dcn-v2", "snn", *OWN)


def fitted(
    key: str, data: Prepared, *, seed: int = 0, limit: float | None = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    method = make(key, OPTIONS[key] | options)
    return method, method.fit(data, seed=seed, time_limit=limit, n_threads=1)


PLAINLY_FITTED: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}


def plainly_fitted(key: str, data: Prepared) -> tuple[Any, dict[str, Any]]:
    """Fitted once for all tests with the same data, which lives as long as they do."""
    if (key, id(data)) not in PLAINLY_FITTED:
        PLAINLY_FITTED[key, id(data)] = fitted(key, data)
    return PLAINLY_FITTED[key, id(data)]


def share_of_spread(method: Any, data: Prepared) -> float:
    """Test RMSE over that of the mean of the training targets."""
    predicted = method.predict(data.test.x, None)
    assert predicted.dtype == np.float64
    assert predicted.shape == data.test.y.shape
    mean = np.full_like(data.test.y, data.train.y.mean())
    return rmse(data.test.y, predicted) / rmse(data.test.y, mean)


def test_all_that_run_here_are_tested() -> None:
    here = {key for key, info in BASELINES.items() if info.adapter and not info.environment}
    assert here == set(OPTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("key", OPTIONS)
def test_beats_the_mean(key: str, numbers: Prepared) -> None:
    method, facts = plainly_fitted(key, numbers)
    assert share_of_spread(method, numbers) < 0.75
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert facts["package_version"]
    assert set(OPTIONS[key]) <= set(facts["options"])


@pytest.mark.parametrize("key", OPTIONS)
def test_learns_from_categories(key: str, mixed: Prepared) -> None:
    method, _ = fitted(key, mixed)
    x = mixed.test.x.copy()
    x[:, 2] = 0
    without = method.predict(x, None)
    x[:, 2] = 1
    assert (method.predict(x, None) - without).mean() > 5  # 20 in truth


@pytest.mark.slow
@pytest.mark.parametrize("key", ["extratrees", "catboost", "lightgbm", "tabm", "grownet"])
def test_a_seed_decides_everything(key: str, numbers: Prepared) -> None:
    models = (plainly_fitted(key, numbers), fitted(key, numbers), fitted(key, numbers, seed=1))
    first, again, other = (method.predict(numbers.test.x, None) for method, _ in models)
    np.testing.assert_array_equal(first, again)
    if key != "lightgbm":  # draws nothing at random with its defaults
        assert (first != other).any()


@pytest.mark.parametrize("key", ["catboost", "lightgbm", "xgboost", *EPOCHS, "grownet"])
def test_validation_curve(key: str, numbers: Prepared) -> None:
    method, facts = plainly_fitted(key, numbers)
    curve = facts["history"]
    assert curve["seconds"] == sorted(curve["seconds"])
    predicted = method.predict(numbers.validation.x, None)
    best = min(curve["validation_rmse"])
    assert rmse(numbers.validation.y, predicted) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("key", ["random-forest", "catboost", "lightgbm", "xgboost"])
def test_trees_keep_a_time_limit(key: str, numbers: Prepared) -> None:
    rounds = {"random-forest": "n_estimators", "catboost": "iterations"}.get(key, "n_estimators")
    patience = {} if key == "random-forest" else {"patience": 10**6}
    method, facts = fitted(key, numbers, limit=0.3, **{rounds: 10**6}, **patience)
    assert facts.get("iterations", facts.get("n_trees")) < 10**6
    assert share_of_spread(method, numbers) < 1


@pytest.mark.parametrize("key", ["mlp", "grownet"])
def test_networks_keep_a_time_limit(key: str, numbers: Prepared) -> None:
    endless = {"n_stages": 10**6} if key == "grownet" else {"max_epochs": 10**6}
    method, facts = fitted(key, numbers, limit=0.3, patience=10**6, **endless)
    assert "time limit" in facts["notes"][0]
    assert share_of_spread(method, numbers) < 1


def test_a_step_of_a_forest_changes_no_tree(numbers: Prepared) -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    whole = ExtraTreesRegressor(n_estimators=20, random_state=3)
    whole.fit(numbers.train.x, numbers.train.y)
    method, _ = fitted("extratrees", numbers, seed=3)
    np.testing.assert_array_equal(
        method.predict(numbers.test.x, None), whole.predict(numbers.test.x)
    )


def test_penalties_are_chosen_by_the_validation_rows(numbers: Prepared) -> None:
    _, facts = plainly_fitted("ridge", numbers)
    errors = {
        alpha: fitted("ridge", numbers, alpha=alpha)[1]["validation_rmse"]
        for alpha in (1e-3, facts["options"]["alpha"], 1e4)
    }
    assert min(errors, key=lambda alpha: errors[alpha]) == facts["options"]["alpha"]


def test_a_cap_on_rows_is_noted(numbers: Prepared) -> None:
    _, facts = fitted("svr-rbf", numbers, max_rows=100)
    assert facts["notes"] == ["100 of 216 training rows, drawn at random"]
    assert plainly_fitted("svr-rbf", numbers)[1]["notes"] == []


def test_epochs_are_capped_where_there_are_any(numbers: Prepared) -> None:
    assert fitted("mlp", numbers, max_epochs=2)[1]["epochs"] == 2
    assert fitted("grownet", numbers, max_epochs=6)[1]["epochs"] == 6
    fitted("ridge", numbers, max_epochs=2)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match=r"Ridge must be one of alpha; got 'beta'"):
        make("ridge", {"beta": 1})
    with pytest.raises(InvalidOptionError, match="an integer >= 1, got 0"):
        make("mlp", {"patience": 0})


def test_divergence_is_an_error(numbers: Prepared) -> None:
    with pytest.raises(ValueError, match="diverged"):
        fitted("mlp", numbers, learning_rate=1e30, max_epochs=2, gradient_clip=1e30)


@pytest.mark.parametrize(
    "key", ["linear-regression", "knn-5", "lasso", "ridge", "svr-linear", "svr-rbf", "extratrees"]
)
def test_too_many_codes_for_a_dense_matrix(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table((0, 0, 9, 0))
    columns = Columns(table.category_sizes)
    dense = fitted(key, table)[0].predict(table.test.x, None)
    # Enough for the dense matrix of the test rows, not for that of the training rows.
    monkeypatch.setattr(common, "_MAX_DENSE_CELLS", 12 * len(table.test.y))
    assert not sparse.issparse(columns.one_hot_for(len(table.test.y))(table.test.x))
    x = columns.sparse_one_hot(table.test.x)
    assert sparse.issparse(x)
    np.testing.assert_array_equal(x.toarray(), columns.one_hot(table.test.x))
    method, _ = fitted(key, table)
    assert sparse.issparse(method.hot(table.test.x))
    assert share_of_spread(method, table) < 0.75
    if key != "extratrees":  # draws its thresholds in another order
        np.testing.assert_allclose(method.predict(table.test.x, None), dense, rtol=0.01)


def test_few_rows_fitted_and_many_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table((0, 0, 9, 0))
    monkeypatch.setattr(common, "_MAX_DENSE_CELLS", 12 * 50)
    method, _ = fitted("svr-rbf", table, max_rows=50)
    assert np.isfinite(method.predict(table.test.x, None)).all()


class IllConditioned(Ridge):  # type: ignore[misc]
    """Whether scipy warns of a matrix depends on the machine's linear algebra; this always does."""

    def fit(self, x: Any, y: Any) -> Any:
        warnings.warn("Ill-conditioned matrix", LinAlgWarning, stacklevel=2)
        return super().fit(x, y)


def test_warnings_of_a_fit_are_noted(numbers: Prepared) -> None:
    assert fitted("ridge", numbers)[1]["notes"] == []
    facts = fitted("lasso", numbers, alpha=1e-6, max_iter=1)[1]
    assert facts["notes"] == ["Lasso did not converge"]
    method = Classical(lambda options, seed, n_threads: IllConditioned(), {})
    facts = method.fit(numbers, seed=0, time_limit=None, n_threads=1)
    assert facts["notes"] == ["IllConditioned met an ill-conditioned matrix"]
