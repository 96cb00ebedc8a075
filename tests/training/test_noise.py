from __future__ import annotations

import numpy as np
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.options import resolve_options
from tabnsm.training.prepare import FitRows


def prepared_loss(noise: float, n_rows: int = 2000, **options) -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    y = X[:, 0] + noise * rng.normal(size=n_rows)
    return (
        FitRows.collect(X, y, random_state=0)
        .prepare(resolve_options(options))
        .options.objective.loss
    )


def test_noisy_targets_are_learned_by_squared_error():
    assert prepared_loss(noise=0.1) == "blend"
    assert prepared_loss(noise=3.0) == "mse"


@pytest.mark.parametrize(
    "options",
    [{"eval_metric": "mae"}, {"huber_weight": 0.8}, {"loss": "blend"}, {"preset": "paper"}],
)
def test_the_blend_stays_where_it_is_asked_for(options):
    assert prepared_loss(noise=3.0, **options) == "blend"


@pytest.mark.parametrize(("noises", "loss"), [((3.0, 4.0), "mse"), ((0.1, 0.2), "blend")])
def test_several_targets_are_looked_at_where_they_are_known(noises, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    Y = np.stack([X[:, 0] + noise * rng.normal(size=3000) for noise in noises], axis=1)
    Y[::3, 1] = np.nan
    rows = FitRows.collect(X, Y, random_state=0)
    assert rows.prepare(resolve_options({})).options.objective.loss == loss


def test_too_few_rows_tell_nothing():
    assert prepared_loss(noise=3.0, n_rows=400) == "blend"


@pytest.mark.slow
def test_the_mean_of_skewed_noise_is_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = rng.exponential(np.exp(0.5 * X[:, 0]))  # mean exp(x / 2), median 0.69 of it
    options = {"preset": "fast", "random_state": 0}
    mean = TabNSMRegressor(**options).fit(X, y).predict(X).mean()
    median = TabNSMRegressor(**options, loss="mae").fit(X, y).predict(X).mean()
    assert mean == pytest.approx(y.mean(), rel=0.1)
    assert median < 0.85 * y.mean()
