"""The estimator as its users meet it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor, TabNSMWarning
from tabnsm.earlier import REMOVED
from tabnsm.options import PRESETS, Options, resolve_options
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")


def quick(**options: Any) -> TabNSMRegressor:
    """Small and deterministic; enough for anything but accuracy."""
    return TabNSMRegressor(
        **({"max_epochs": 3, "d_token": 8, "head_width": 16, "random_state": 0} | options)
    )


@pytest.fixture(scope="module")
def mixed() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with holes, categories, booleans, dates; no text."""
    rng = np.random.default_rng(0)
    n = 240
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, n),
            "rooms": rng.integers(1, 6, n),
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "new": rng.random(n) < 0.3,
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
        }
    )
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "city"] = None
    y = frame["size"].fillna(50) * 2 + 5 * frame["rooms"] + 10 * (frame["city"] == "Oslo")
    return frame, (y + rng.normal(0, 1, n)).to_numpy()


@pytest.mark.slow
def test_learns_a_mixed_table_better_than_the_mean(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = TabNSMRegressor(random_state=0, max_epochs=40).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.8
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.n_features_in_ == 5
    assert model.history_.best.validation_rmse == min(e.validation_rmse for e in model.history_)
    kinds = {row.name: row.kind for row in model.describe_columns()}
    assert kinds == {
        "size": "numeric",
        "rooms": "numeric",
        "city": "category",
        "new": "numeric",
        "sold": "date",
    }


@pytest.mark.slow
def test_every_table_library_gives_the_same_bits(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    tables = [X, pl.from_pandas(X), pa.Table.from_pandas(X, preserve_index=False)]
    predictions = [quick().fit(table, y).predict(table) for table in tables]
    for other in predictions[1:]:
        np.testing.assert_array_equal(other, predictions[0])
    model = quick().fit(X, y)
    np.testing.assert_array_equal(model.predict(tables[1]), predictions[0])


@pytest.mark.slow
def test_same_seed_same_bits_and_another_seed_other_bits(
    mixed: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = mixed
    first, second = (quick().fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, quick(random_state=1).fit(X, y).predict(X))


@pytest.mark.slow
def test_a_row_does_not_depend_on_its_neighbours(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick().fit(X, y)
    whole = model.predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.predict(X.iloc[order]), whole[order])
    single = np.concatenate([model.predict(X.iloc[[i]]) for i in range(20)])
    np.testing.assert_array_equal(single, whole[:20])


def test_columns_in_another_order_and_extra_ones(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick().fit(X, y)
    shuffled = X[list(X.columns[::-1])].assign(extra=1)
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(X))
    with pytest.raises(InvalidDataError, match="rooms"):
        model.predict(X.drop(columns="rooms"))


def test_names_that_only_one_table_has_are_reported_as_scikit_learn_does() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    named, y = pd.DataFrame(X, columns=list("abc")), X[:, 0] * X[:, 1]
    with_names, without = quick().fit(named, y), quick().fit(X, y)
    message = "X does not have valid feature names, but TabNSMRegressor was fitted with feature"
    with pytest.warns(UserWarning, match=message) as caught:
        by_position = with_names.predict(X)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(by_position, with_names.predict(named))
    np.testing.assert_array_equal(with_names.predict(named[["c", "a", "b"]]), by_position)
    message = "X has feature names, but TabNSMRegressor was fitted without feature names"
    with pytest.warns(UserWarning, match=message) as caught:
        without.predict(named[["c", "a", "b"]])
    assert [warning.filename for warning in caught] == [__file__]
    without.predict(pd.DataFrame(X))  # numbered columns are no names


def test_unseen_missing_and_infinite_values_are_predicted(
    mixed: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = mixed
    model = quick().fit(X, y)
    odd = X.iloc[:4].copy()
    odd["city"] = ["Paris", None, "Oslo", ""]
    odd["size"] = [np.inf, np.nan, -np.inf, 50.0]
    odd["sold"] = pd.Series([pd.NaT] * 4, dtype=X["sold"].dtype)
    with pytest.warns(TabNSMWarning, match="2 value"):
        assert np.isfinite(model.predict(odd)).all()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_the_largest_numbers_there_are(preset: str) -> None:
    rng = np.random.default_rng(0)
    X, most = rng.normal(size=(120, 3)), 1.7e308
    signs, spread = rng.choice([-most, most], 120), rng.uniform(-1, 1, 120) * most
    few = np.where(np.arange(120) % 40 == 0, signs, X[:, 0])
    for column in (signs, spread, few):
        table = np.c_[column, X]
        model = quick(preset=preset).fit(table, X[:, 0] * X[:, 1])
        assert np.isfinite(model.predict(table)).all()
        model = quick(preset=preset).fit(X, column)
        assert np.isfinite(model.predict(X)).all()
        assert np.isfinite(model.validation_rmse_)
    assert np.isfinite(quick(preset=preset).fit(X, spread, np.abs(X[:, 0])).predict(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TabNSMWarning)  # they are far outside the range
        assert np.isfinite(model.predict(np.where(X > 0, most, -most))).all()


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (np.ones((40, 3)), {}),
        (pd.DataFrame({"a": ["x"] * 40, "b": pd.Timestamp("2024-01-01"), "c": None}), {}),
        (pd.DataFrame({"a": [1] * 40, "b": range(40)}), {"column_kinds": {"b": "drop"}}),
        (pd.DataFrame({"a": [1.0, None] * 20}), {"preset": "paper"}),
        (pd.DataFrame({"a": [2] * 40}), {"column_kinds": {"a": "numeric"}}),
    ],
)
def test_columns_that_do_not_vary_get_a_warning(X: Any, options: dict[str, Any]) -> None:
    message = r"varies in the training rows, so that the model can only predict a constant\. Check"
    with pytest.warns(TabNSMWarning, match=message) as caught:
        model = quick(**options).fit(X, np.arange(40.0))
    assert [warning.filename for warning in caught] == [__file__]
    assert np.ptp(model.predict(X)) == 0


def test_a_hole_is_something_that_varies() -> None:
    X = pd.DataFrame({"a": [1.0, None] * 20})
    assert np.ptp(quick().fit(X, np.arange(40.0) % 2).predict(X)) > 0


@pytest.mark.slow
def test_no_rows_give_no_predictions(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    X = X.assign(note=[f"note {k}" for k in range(len(X))], day=X["sold"].dt.strftime("%d.%m.%Y"))
    model = quick(text_encoder=FakeTextEncoder(8), select_text=False).fit(X, y)
    assert {row.kind for row in model.describe_columns()} == {"numeric", "category", "date", "text"}
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    # A file with only a header has columns of objects or strings.
    for none in (X[:0], X[:0].astype(object), pl.from_pandas(X)[:0], arrow[:0], {k: [] for k in X}):
        prediction = model.predict(none)
        assert (prediction.shape, prediction.dtype) == ((0,), np.float64)
        explanation = model.explain(none)
        assert explanation.attributions.shape == (0, len(X.columns))
        assert explanation.importance.tolist() == [0.0] * len(X.columns)
    with pytest.raises(InvalidDataError, match="rooms"):
        model.predict(X[:0].drop(columns="rooms"))
    numbers = np.random.default_rng(0).normal(size=(300, 3))
    straight = quick().fit(numbers, numbers.sum(axis=1))
    assert straight.target_.has_linear_fit
    assert straight.predict(numbers[:0]).shape == (0,)


def test_far_values_are_clipped_with_a_warning(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick().fit(X, y)
    far = X.iloc[:2].copy()
    far["size"] = 1e9
    with pytest.warns(TabNSMWarning, match="size"):
        prediction = model.predict(far)
    limit = X["size"].max() + 0.1 * (X["size"].max() - X["size"].min())
    np.testing.assert_allclose(prediction, model.predict(far.assign(size=limit)), rtol=1e-3)


@pytest.mark.slow
def test_a_row_that_is_large_in_every_way_is_not_thrown_anywhere() -> None:
    rng = np.random.default_rng(0)
    # Forty shares of one size: no column of the large row is out of range, only their sum.
    X = rng.exponential(size=(300, 40))
    y = X.sum(axis=1) ** 2
    large = np.repeat(X.max(axis=0)[None], 3, axis=0)
    low, high = y.min() - 0.1 * np.ptp(y), y.max() + 0.1 * np.ptp(y)
    limited, free = (
        quick(max_epochs=15, linear_residual=False, clip_predictions=clip).fit(X, y)
        for clip in (True, False)
    )
    assert (free.predict(large) > high).all()
    assert ((limited.predict(large) <= high) & (limited.predict(large) >= low)).all()
    np.testing.assert_array_equal(limited.explain(large).predictions, limited.predict(large))
    # Of the rows of the table nothing changes.
    np.testing.assert_array_equal(limited.predict(X), free.predict(X))


def test_a_linear_fit_goes_on_where_the_limit_of_the_networks_ends() -> None:
    X = np.random.default_rng(0).exponential(size=(300, 40))
    y = X.sum(axis=1)
    model = quick().fit(X, y)
    assert model.target_.has_linear_fit
    large = X.max(axis=0)[None]
    assert large.sum() > 2 * y.max()
    np.testing.assert_allclose(model.predict(large), large.sum(), rtol=0.01)


@pytest.mark.slow
def test_sklearn_tools_work(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick(learning_rate=3e-3)
    assert clone(model).get_params() == model.get_params()
    assert len(cross_val_score(quick(), X, y, cv=3)) == 3
    search = GridSearchCV(quick(), {"d_token": np.array([4, 8])}, cv=2).fit(X, y)
    assert search.best_params_["d_token"] in (4, 8)
    numbers = X[["size", "rooms"]].fillna(0)
    pipeline = make_pipeline(StandardScaler(), quick()).fit(numbers, y)
    assert pipeline.predict(numbers).shape == y.shape


@pytest.mark.slow
def test_validation_rows_by_hand_group_and_time(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    quick().fit(X, y, X_val=X[:30], y_val=y[:30])
    quick().fit(X, y, validation_groups=X["rooms"])
    quick().fit(X, y, validation_time=X["sold"])
    quick().fit(X, y, X_val=X[:3], y_val=[1.0, 1.0, 1.0])
    with pytest.raises(InvalidDataError, match="X_val must have the columns of X, got none named"):
        quick().fit(X, y, X_val=X[["size"]], y_val=y)
    with pytest.raises(InvalidDataError, match="as many columns as X"):
        quick().fit(np.ones((9, 2)), np.arange(9), X_val=np.ones((3, 1)), y_val=[1, 2, 3])
    with pytest.raises(InvalidOptionError, match="given together, got only X_val"):
        quick().fit(X, y, X_val=X)
    with pytest.raises(InvalidOptionError, match="Only one way to validate"):
        quick().fit(X, y, X_val=X, y_val=y, validation_time=X["sold"])
    with pytest.raises(InvalidDataError, match=r"one value per row \(240\)"):
        quick().fit(X, y, validation_groups=[1, 2])


def test_statistics_come_from_training_rows_only(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    altered, y_spoiled = X.copy(), y.copy()
    late = X["sold"] >= X["sold"].quantile(0.9)
    altered.loc[late, "size"] = 1e6
    altered.loc[late, "city"] = "Paris"
    y_spoiled[late] = -1e6
    # Whether a linear part is taken off is for the validation rows to decide, as the best epoch is.
    options = {"max_epochs": 1, "clip_outliers": False, "linear_residual": False}
    plain = quick(**options).fit(X, y, validation_time=X["sold"])
    other = quick(**options).fit(altered, y_spoiled, validation_time=X["sold"])
    np.testing.assert_array_equal(plain.predict(X), other.predict(X))


@pytest.mark.slow
def test_rows_without_target_are_dropped_with_a_count(
    mixed: tuple[pd.DataFrame, np.ndarray],
) -> None:
    X, y = mixed
    holes = y.copy()
    holes[5:9] = np.nan
    with pytest.warns(TabNSMWarning, match="4 of 240 rows of X have no target"):
        model = quick().fit(X, holes)
    kept = np.r_[0:5, 9:240]
    np.testing.assert_array_equal(model.predict(X), quick().fit(X.iloc[kept], y[kept]).predict(X))


@pytest.mark.slow
def test_weight_zero_is_absence(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    weight = np.ones(len(y))
    weight[::4] = 0
    y_spoiled = np.where(weight == 0, 1e9, y)
    kept = weight > 0
    weighted = quick().fit(X, y_spoiled, sample_weight=weight)
    absent = quick().fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(weighted.predict(X), absent.predict(X))


@pytest.mark.slow
def test_weights_act_like_repeated_rows() -> None:
    """A group of weight three pulls the prediction as three copies of it do."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (160, 1)).astype(float)
    low = rng.random(160) < 0.5
    y = np.where(low, 0.0, 1.0)
    options = {"loss": "mse", "max_epochs": 30, "max_boost": 1.0}
    weighted, repeated = [], []
    rows = np.concatenate([np.arange(160), np.flatnonzero(~low), np.flatnonzero(~low)])
    for seed in range(2):
        model = quick(**options, random_state=seed).fit(X, y, np.where(low, 1.0, 3.0))
        weighted.append(model.predict(X).mean())
        repeated.append(quick(**options, random_state=seed).fit(X[rows], y[rows]).predict(X).mean())
    unweighted = quick(**options).fit(X, y).predict(X).mean()
    assert np.mean(weighted) == pytest.approx(np.mean(repeated), abs=0.05)
    assert np.mean(weighted) > unweighted + 0.1


def test_score_takes_weights(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick().fit(X, y)
    weight = np.r_[np.ones(100), np.zeros(140)]
    assert model.score(X, y, sample_weight=weight) == pytest.approx(model.score(X[:100], y[:100]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["a"] * 240}, "must be numbers"),
        ({"y": [np.nan] * 240}, "must have values"),
        ({"y": [1.0] * 240}, "must vary"),
        ({"y": [np.inf] + [1.0] * 239}, "must be finite"),
        ({"y": [1.0, 2.0]}, "one value per row"),
        ({"y": None}, "requires y to be passed"),
        ({"X": pd.DataFrame({"a": []}), "y": []}, "minimum of 1"),
        ({"sample_weight": [-1.0] * 240}, "finite and >= 0"),
        ({"sample_weight": [1.0]}, "1D with one value per row"),
        ({"sample_weight": ["a"] * 240}, "sample_weight must be numbers"),
        ({"sample_weight": [0.0] * 240}, "got zero weight for all"),
        ({"X": np.ones((3, 2)), "y": [1, 2, 3]}, "At least 4 rows"),
    ],
)
def test_bad_data_is_refused_before_any_work(
    mixed: tuple[pd.DataFrame, np.ndarray], change: dict[str, Any], message: str
) -> None:
    X, y = mixed
    with pytest.raises(ValueError, match=message):
        quick().fit(**({"X": X, "y": y} | change))


def test_duplicated_names_are_refused(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    with pytest.raises(InvalidDataError, match="size"):
        quick().fit(pd.concat([X, X[["size"]]], axis=1), y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "worst"}, "preset must be one of"),
        ({"validation_fraction": 1.0}, "validation_fraction must be > 0 and < 1, got 1.0"),
        ({"max_epochs": 0}, "max_epochs must be an integer >= 1, got 0"),
        ({"batch_size": "big"}, 'batch_size must be "auto" or an integer >= 1'),
        ({"device": "abacus"}, "device must be"),
        ({"huber_weight": 2}, "huber_weight"),
        ({"max_boost": 0.5}, "max_boost"),
        ({"column_kinds": {"sizes": "numeric"}}, "sizes"),
        ({"column_kinds": {"size": "nominal"}}, "nominal"),
        ({"validation_fraction": "a"}, "validation_fraction must be > 0 and < 1, got 'a'"),
        ({"verbose": "1"}, "verbose must be an integer >= 0, got '1'"),
        ({"missing_indicators": "no"}, "missing_indicators must be one of True, False"),
        ({"device": "cuda:7"}, "device must be"),
        ({"time_limit": -1}, "time_limit must be None or > 0"),
    ],
)
def test_bad_options_are_refused(
    mixed: tuple[pd.DataFrame, np.ndarray], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        quick(**options).fit(*mixed)


def test_a_checkpoint_folder_that_is_a_file(
    mixed: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOptionError, match="checkpoint_dir must be a folder"):
        quick(checkpoint_dir=tmp_path / "file").fit(*mixed)


def test_resume_needs_a_folder(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    with pytest.raises(InvalidOptionError, match="resume=True needs checkpoint_dir"):
        quick().fit(*mixed, resume=True)


def test_predict_before_fit() -> None:
    with pytest.raises(NotFittedError):
        quick().predict([[1.0]])


def test_presets_differ_and_explicit_options_win() -> None:
    paper = resolve_options({"preset": "paper"})
    assert paper.encoder.date_encoding == "text"
    assert paper.rise.rise_sampling == "multinomial"
    assert not paper.objective.normalize_grid
    assert (
        resolve_options({"preset": "paper", "rise_sampling": "systematic"}).rise.rise_sampling
        == "systematic"
    )
    assert resolve_options({"preset": "fast"}).architecture.d_token < 32


@pytest.mark.parametrize("preset", ["paper", "fast"])
def test_presets_fit(mixed: tuple[pd.DataFrame, np.ndarray], preset: str) -> None:
    X, y = mixed
    X = X.drop(columns="sold")
    model = TabNSMRegressor(preset=preset, max_epochs=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def config_defaults() -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for part in dataclasses.fields(Options):
        config = getattr(resolve_options({}), part.name)
        defaults |= {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    return defaults


def test_signature_configs_and_docstring_agree() -> None:
    """An option is None exactly where a preset changes it; else all three say the same."""
    signature = inspect.signature(TabNSMRegressor).parameters
    configs = config_defaults()
    preset_dependent = {name for preset in PRESETS.values() for name in preset}
    estimator_only = {"preset", "validation_fraction", "checkpoint_dir", "device", "random_state"}
    estimator_only |= {"n_jobs", "warm_start"}
    assert (set(configs) | estimator_only) - set(REMOVED) == set(signature)
    assert set(REMOVED) <= set(configs)  # the network and the training loop have them still
    documented = dict(
        re.findall(r"^    (\w+) : [^\n]*, default (.+)$", TabNSMRegressor.__doc__ or "", re.M)
    )
    for name, parameter in signature.items():
        assert documented[name] == _spelled(parameter.default), name
        if name in preset_dependent or name == "column_kinds":
            assert parameter.default is None, name
        elif name in configs:
            assert parameter.default == configs[name], name


def test_docstring_has_every_option_in_a_group_and_in_the_order_of_the_signature() -> None:
    doc = TabNSMRegressor.__doc__ or ""
    summary, parameters = doc.split("    Attributes\n")[0].split("    Parameters\n")
    names = re.findall(r"^    (\w+) : ", parameters, re.M)
    assert names == list(inspect.signature(TabNSMRegressor).parameters)
    ranges = re.findall(r"`(\w+)`\s+to\s+`(\w+)`", summary)
    grouped = [name for a, b in ranges for name in names[names.index(a) : names.index(b) + 1]]
    assert ["preset", *grouped] == names


def test_docstring_names_the_default_of_preset_dependent_options() -> None:
    doc = TabNSMRegressor.__doc__ or ""
    configs = config_defaults()
    for name in {name for preset in PRESETS.values() for name in preset}:
        text = doc.split(f"    {name} : ")[1].split("\n    ")[1:3]
        shown = " ".join(text)
        assert _spelled(configs[name]) in shown, name
        for preset, changes in PRESETS.items():
            if name in changes:
                assert f"{preset}: {_spelled(changes[name])}" in shown, name


def _spelled(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:.0e}".replace("e-0", "e-") if value in (2e-3, 1e-2) else str(value)


def test_time_limit_stops_early(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick(max_epochs=100_000, patience=100_000, time_limit=0.5).fit(X, y)
    assert model.history_.stop_reason == "time_limit=0.5 s reached"
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
def test_the_eval_metric_decides_and_scores(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    arguments = {"X_val": X[:60], "y_val": y[:60]}
    rmse, mae = (
        quick(max_epochs=12, eval_metric=metric).fit(X, y, **arguments)
        for metric in ("rmse", "mae")
    )
    default = quick(max_epochs=12).fit(X, y, **arguments)
    np.testing.assert_array_equal(default.predict(X), rmse.predict(X))
    assert rmse.best_score_ == rmse.validation_rmse_
    error = np.abs(mae.predict(X[:60]) - y[:60]).mean()
    assert mae.best_score_ == pytest.approx(error, rel=1e-6)
    assert mae.history_.best.validation_mae == min(e.validation_mae for e in mae.history_)
    assert mae.n_iter_ == 12
    with pytest.raises(InvalidOptionError, match="eval_metric must be one of"):
        quick(eval_metric="r2").fit(X, y)


@pytest.mark.slow
def test_the_history_as_frame_and_picture(
    mixed: tuple[pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    with pytest.raises(NotFittedError):
        quick().training_history()
    with pytest.raises(NotFittedError):
        quick().plot_history()
    assert not hasattr(quick(), "n_iter_")
    model = quick(n_ensemble=2).fit(*mixed)
    frame = model.training_history()
    assert list(frame["network"]) == [1, 1, 1, 2, 2, 2]
    assert list(frame["epoch"]) == [1, 2, 3, 1, 2, 3]
    best = frame.loc[frame["is_best"], "validation_rmse"]
    assert list(best) == [history.best.validation_rmse for history in model.histories_]
    assert model.history_.to_frame().equals(frame[:3].drop(columns="network"))
    figure = model.plot_history(tmp_path / "history.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_text_that_takes_too_long_is_left_out_of_a_limited_fit() -> None:
    class Slow(FakeTextEncoder):
        def encode(self, texts: list[str]) -> np.ndarray:
            time.sleep(0.01 * len(texts))
            return super().encode(texts)

    n = 600
    X = pd.DataFrame({"n": np.arange(n) % 13, "words": [f"text {k}" for k in range(n)]})
    y = X["n"] * 1.0 + np.random.default_rng(0).normal(size=n)
    with pytest.warns(TabNSMWarning, match="The text columns 'words' are left out") as caught:
        model = quick(text_encoder=Slow(8), time_limit=2.0).fit(X, y)
    assert Path(caught[0].filename).name == "test_estimator.py"
    assert len(model.predict(X[["n"]])) == n
    notes = {row.name: row.note for row in model.describe_columns()}
    assert notes["words"].startswith("left out: embedding")
    whole = quick(text_encoder=FakeTextEncoder(8), time_limit=1e6, select_text=False).fit(X, y)
    assert {row.name: row.kind for row in whole.describe_columns()}["words"] == "text"


@pytest.mark.slow
def test_counts_are_predicted_by_their_mean() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    visits = rng.choice([0.0, 1.0, 8.0], size=600, p=[0.7, 0.2, 0.1])  # mean 1, median 0
    model = quick(max_epochs=8).fit(X, visits)
    assert model.options_.objective.loss == "mse"
    assert model.predict(X).mean() == pytest.approx(1.0, abs=0.25)
    same = quick(max_epochs=8, loss="mse").fit(X, visits)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    blend = quick(max_epochs=8, loss="blend").fit(X, visits)
    assert blend.predict(X).mean() < 0.75
    assert quick(preset="paper").fit(X, visits).options_.objective.loss == "blend"


def test_interrupt_keeps_the_best_model_so_far(
    mixed: tuple[pd.DataFrame, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tabnsm.training.loop import Trainer

    X, y = mixed
    step = Trainer.train_step
    calls = 0

    def interrupted(self: Trainer, *args: Any) -> float:
        nonlocal calls
        calls += 1
        if calls == 40:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(Trainer, "train_step", interrupted)
    with pytest.warns(TabNSMWarning, match="interrupted in epoch 3; the model keeps the weights"):
        model = quick(max_epochs=50).fit(X, y)
    assert model.history_.stop_reason == "interrupted"
    assert np.isfinite(model.predict(X)).all()
    calls = 30
    with pytest.raises(KeyboardInterrupt):
        quick(max_epochs=50).fit(X, y)


@pytest.mark.slow
def test_ctrl_c_in_a_real_process(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np, warnings\n"
        "from tabnsm import TabNSMRegressor\n"
        "X = np.random.default_rng(0).normal(size=(500, 4))\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    model = TabNSMRegressor(max_epochs=10**6, patience=10**6, verbose=2, d_token=8)\n"
        "    model.fit(X, X[:, 0] * X[:, 1])\n"
        "print(model.history_.stop_reason, len(model.predict(X)), caught[0].message)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "epoch   3" in line:
            break
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    shown = "interrupted: 1 of 3 networks trained 500 Training was interrupted in epoch"
    assert out.startswith(shown)


def test_row_ids_and_leaks_get_a_warning() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    X = pd.DataFrame({"id": np.arange(200), "a": rng.normal(size=200), "copy": 3 * y + 1})
    with pytest.warns(TabNSMWarning) as caught:
        quick().fit(X, y)
    shown = " ".join(str(w.message) for w in caught)
    assert "'id'" in shown
    assert "'copy'" in shown
    assert "'a'" not in shown


@pytest.mark.slow
def test_precision_of_choice(mixed: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = mixed
    model = quick(precision="bfloat16").fit(X, y)
    assert next(model.model_.parameters()).dtype == torch.float32
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.slow
def test_verbose_levels(
    mixed: tuple[pd.DataFrame, np.ndarray], capfd: pytest.CaptureFixture[str]
) -> None:
    quick().fit(*mixed)
    assert capfd.readouterr() == ("", "")
    quick(verbose=2).fit(*mixed)
    assert capfd.readouterr().err.count("validation RMSE") == 3
    for one in (1, True, np.True_):
        quick(verbose=one).fit(*mixed)
        assert "3/3" in capfd.readouterr().err
    quick(verbose=False).fit(*mixed)
    assert capfd.readouterr() == ("", "")


def test_inputs_and_predictions_are_limited_apart() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] * X[:, 1]
    for inputs, predictions in ((True, False), (False, True)):
        model = quick(clip_outliers=inputs, clip_predictions=predictions).fit(X, y)
        assert model.encoder_.config.clip_outliers is inputs
        assert (model.target_.scalers[0].limits is not None) is predictions
        assert model.options_.target.clip_predictions is predictions
