"""tune: the same rows and bits as a fit, encoded once, and only what validates decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor, TabNSMWarning
from tabnsm.target import LinearFit
from tabnsm.training.loop import Trainer
from tabnsm.tuning import Choice, Integer, Real, tune
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")

SMALL = {"max_epochs": 2, "head_width": 8}
SPACE = {"n_heads": Integer(1, 2), "d_head": Integer(4, 8, step=4), "max_boost": Real(1, 2)}


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.normal(size=n), "city": rng.choice(["x", "y"], n)}
    )
    y = frame["a"] * frame["b"] + (frame["city"] == "x") + rng.normal(0, 0.1, n)
    return frame, y.to_numpy()


@pytest.mark.parametrize("way", ["random", "given", "groups", "time"])
def test_the_best_options_reproduce_the_best_score(
    data: tuple[pd.DataFrame, np.ndarray], way: str
) -> None:
    X, y = data
    arguments: dict[str, Any] = {
        "random": {"sample_weight": np.linspace(0, 2, len(y))},
        "given": {"X_val": X[:20], "y_val": y[:20]},
        "groups": {"validation_groups": np.arange(len(y)) // 10},
        "time": {"validation_time": np.arange(len(y))},
    }[way]
    result = tune(X, y, **arguments, options=SMALL, space=SPACE, n_trials=3, random_state=5)
    options = json.loads(json.dumps(result.best_options))
    assert options["preset"] == "default"
    assert "max_epochs" not in options  # it bounds trials
    assert options["head_width"] == 8
    assert "d_head" not in options
    model = TabNSMRegressor(**options, max_epochs=2, random_state=5).fit(X, y, **arguments)
    assert model.history_.best.validation_rmse == result.best_score
    assert result.best_score == min(t.score for t in result.trials if t.score is not None)


@pytest.mark.parametrize(
    ("options", "is_searched"),
    [
        ({}, False),
        ({"loss": "blend"}, True),
        ({"loss": "mae"}, False),
        ({"n_grid_cells": 50}, True),
    ],
)
def test_what_only_the_blend_has_is_not_searched_for_ratings(
    data: tuple[pd.DataFrame, np.ndarray], options: dict[str, Any], is_searched: bool
) -> None:
    X, y = data
    stars = np.digitize(y, [-1, 0, 1])
    result = tune(X, stars, options=SMALL | options, n_trials=2, random_state=0)
    assert all(("huber_weight" in trial.options) == is_searched for trial in result.trials)
    model = TabNSMRegressor(**result.best_options, max_epochs=2, random_state=0).fit(X, stars)
    assert model.history_.best.validation_rmse == result.best_score


def test_a_linear_target_is_tuned_on_the_residual_of_the_linear_fit(
    data: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = data
    y = (3 * X["a"] - X["b"] + 2 * (X["city"] == "x")).to_numpy()
    fits: list[int] = []
    fit = LinearFit.fit

    def counted(*arguments: Any) -> LinearFit | None:
        fits.append(1)
        return fit(*arguments)

    monkeypatch.setattr(LinearFit, "fit", counted)
    rows = {"X_val": X[:30], "y_val": y[:30]}
    result = tune(X, y, **rows, options=SMALL, space=SPACE, n_trials=2, random_state=5)
    assert len(fits) == 1  # not once per trial
    model = TabNSMRegressor(**result.best_options, max_epochs=2, random_state=5).fit(X, y, **rows)
    assert model.target_.has_linear_fit
    assert model.history_.best.validation_rmse == result.best_score < 0.01


def test_presets_own_options_are_the_first_trial(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    result = tune(X, y, preset="fast", options={"max_epochs": 1}, n_trials=1)
    plain = TabNSMRegressor(preset="fast", max_epochs=1, random_state=0).fit(X, y)
    assert result.best_score == plain.history_.best.validation_rmse
    assert result.best_options["d_token"] == 16
    assert TabNSMRegressor(**result.best_options).get_params()["n_heads"] == 4


@pytest.mark.slow
def test_a_table_is_encoded_once_per_set_of_encoder_options(
    data: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = data
    texts = X.assign(note=[f"note number {k}" for k in range(len(X))])
    encoder = FakeTextEncoder(d_text=4)
    fixed = SMALL | {"text_encoder": encoder, "text_cache": False}
    result = tune(texts, y, options=fixed, space=SPACE, n_trials=4)
    assert len(encoder.encoded) == len(X)
    assert "text_encoder" not in result.best_options
    encoder.encoded.clear()
    space = SPACE | {"clip_outliers": Choice(True, False)}
    result = tune(texts, y, options=fixed, space=space, n_trials=6)
    assert {trial.options["clip_outliers"] for trial in result.trials} == {True, False}
    assert len(encoder.encoded) == 2 * len(X)


@pytest.mark.slow
def test_a_real_study_prunes(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    space = {"learning_rate": Real(1e-6, 1e-2, log=True)}
    fixed = {"max_epochs": 8, "d_token": 8, "head_width": 16, "batch_size": 36}
    result = tune(X, y, options=fixed, space=space, n_trials=10)
    states = [trial.state for trial in result.trials]
    assert states.count("pruned") >= 1
    assert result.best_score < max(t.score for t in result.trials if t.score is not None)


def test_the_number_of_networks_is_nothing_to_search(
    data: tuple[pd.DataFrame, np.ndarray],
) -> None:
    with pytest.raises(InvalidOptionError, match="space must not hold n_ensemble"):
        tune(*data, space={"n_ensemble": Integer(1, 4)}, n_trials=1)


@pytest.mark.slow
def test_trials_are_scored_by_the_eval_metric(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    options = SMALL | {"eval_metric": "mae"}
    result = tune(X, y, options=options, space=SPACE, n_trials=2, random_state=5)
    assert result.best_options["eval_metric"] == "mae"
    limits = {"max_epochs": SMALL["max_epochs"]}  # of a trial, so that they are no option
    model = TabNSMRegressor(**result.best_options, **limits, random_state=5).fit(X, y)
    assert model.history_.best.validation_mae == result.best_score
    with pytest.raises(InvalidOptionError, match="space must not hold eval_metric, because it is"):
        tune(X, y, space={"eval_metric": Choice(["rmse", "mae"])})


def test_divergence_is_a_pruned_trial(
    data: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data
    evaluate, seen = Trainer.evaluate, []

    def diverging(self: Trainer, model: Any) -> tuple[float, float, float]:
        seen.append(1)
        return (np.inf,) * 3 if len(seen) == 3 else evaluate(self, model)

    monkeypatch.setattr(Trainer, "evaluate", diverging)
    result = tune(X, y, options=SMALL, space=SPACE, n_trials=2)
    assert [trial.state for trial in result.trials] == ["complete", "pruned"]


def test_time_limits(data: tuple[pd.DataFrame, np.ndarray], tmp_path: Path) -> None:
    X, y = data
    endless = {"max_epochs": 10**6, "patience": 10**6, "d_token": 4, "n_heads": 1, "head_width": 4}
    space = {"max_boost": Real(1, 2)}
    result = tune(X, y, options=endless, space=space, n_trials=50, time_limit=0.5)
    assert result.stopped == "time"
    assert result.trials[0].state == "complete"
    # Each trial has a limit of its own, which is no part of the result.
    result = tune(X, y, options=endless | {"time_limit": 0.05}, space=space, n_trials=3)
    assert result.stopped == "trials"
    assert "time_limit" not in result.best_options


@pytest.mark.slow
def test_ctrl_c_in_a_trial_keeps_the_best_so_far(
    data: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    X, y = data
    step, calls = Trainer.train_step, []
    whole = tune(X, y, options=SMALL, space=SPACE, n_trials=3)

    def interrupted(self: Trainer, *args: Any) -> float:
        calls.append(1)
        if len(calls) == 24:  # in the second epoch of the second trial
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(Trainer, "train_step", interrupted)
    storage = tmp_path / "s.journal"
    result = tune(X, y, options=SMALL, space=SPACE, n_trials=3, storage=storage)
    assert result.stopped == "interrupted"
    assert [trial.state for trial in result.trials] == ["complete", "repeated", "waiting"]
    assert result.best_score == whole.trials[0].score
    monkeypatch.undo()
    resumed = tune(X, y, options=SMALL, space=SPACE, n_trials=3, storage=storage)
    assert resumed.best_score == whole.best_score
    assert resumed.best_options == whole.best_options


def test_other_data_options_or_seed_are_another_study(
    data: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    X, y = data
    storage = tmp_path / "s.journal"
    base: dict[str, Any] = {"options": SMALL, "space": SPACE, "n_trials": 1, "storage": storage}
    tune(X, y, **base)
    for X_other, y_other, change in (
        (X.assign(a=X["a"] + 1e-3 * X["b"]), y, {}),
        (X, y + 0.001 * X["a"], {}),
        (X, y, {"options": SMALL | {"head_width": 4}}),
        (X, y, {"random_state": 1}),
        (X, y, {"preset": "paper"}),
    ):
        with pytest.raises(InvalidOptionError, match="was made with other data or options"):
            tune(X_other, y_other, **(base | change))
    # How long and how loudly a trial runs is no other study.
    tune(X, y, **(base | {"options": SMALL | {"time_limit": 100.0}}))


def test_what_is_fixed_is_not_searched(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    fixed = {"max_epochs": 1, "d_token": 8, "attention": "full", "learning_rate": 1e-3}
    result = tune(X, y, options=fixed, n_trials=2)
    searched = set(result.trials[0].options)
    assert searched == {
        "batch_size",
        "n_grid_cells",
        "temperature",
        "huber_weight",
        "max_boost",
        "refresh_every",
    }
    assert result.best_options["attention"] == "full"
    assert result.best_options["d_token"] == 8


def test_epochs_that_are_searched_are_part_of_the_result(
    data: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = data
    result = tune(X, y, options={"head_width": 8}, space={"max_epochs": Integer(2, 3)}, n_trials=1)
    assert result.best_options["max_epochs"] in (2, 3)


def test_warnings_about_columns_are_given_once(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    with pytest.warns(TabNSMWarning) as caught:
        tune(X.assign(copy=2 * y), y, options=SMALL, space=SPACE, n_trials=2)
    assert len(caught) == 1
    assert "'copy'" in str(caught[0].message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 0}, "n_trials must be an integer >= 1, got 0"),
        ({"preset": "worst"}, "preset must be one of"),
        ({"options": {"d_tokn": 8}}, "no 'd_tokn'. Did you mean 'd_token'"),
        ({"options": {"random_state": 1}}, "no 'random_state'"),
        ({"options": {"d_token": 7}}, "d_token must be a multiple of n_heads"),
        ({"space": {"d_heads": Integer(1, 2)}}, "no 'd_heads'. Did you mean 'd_head'"),
        ({"space": {"d_token": 8}}, "must be an Integer, Real or Choice"),
        ({"space": {"mixer": Choice(True, False)}, "options": {"mixer": True}}, "in both"),
        ({"random_state": None}, "random_state must be an integer >= 0, got None"),
        ({"X_val": np.zeros((3, 3))}, "given together, got only X_val"),
    ],
)
def test_invalid_arguments_are_refused(
    data: tuple[pd.DataFrame, np.ndarray], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        tune(*data, **arguments)


def test_bad_data_is_refused(data: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(InvalidDataError, match="one value per row"):
        tune(X, y[:5])
