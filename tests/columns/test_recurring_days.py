from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.export.reader import ExportedModel
from tabnsm.tables import Table

DAYS = pd.date_range("2012-01-01", "2019-12-31")


def is_holiday(when: pd.DatetimeIndex) -> np.ndarray:
    """4 July, and the fourth Thursday of November."""
    fourth = (when.day - 1) // 7 == 3
    is_thanksgiving = (when.month == 11) & (when.day_of_week == 3) & fourth
    return np.asarray(((when.month == 7) & (when.day == 4)) | is_thanksgiving)


def riders(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    temperature = rng.normal(size=len(DAYS))
    frame = pd.DataFrame({"day": DAYS, "temperature": temperature})
    target = 5.0 * (DAYS.day_of_week < 5) + temperature - 6.0 * is_holiday(DAYS)
    return frame, target + 0.3 * rng.normal(size=len(DAYS))


def encode(frame: pd.DataFrame, target: np.ndarray, rows: np.ndarray | None = None):
    encoder = TableEncoder(EncoderConfig())
    encoded = encoder.fit_transform(Table.from_native(frame), rows, None, target.reshape(-1, 1))
    return encoder, encoded.dense.numpy()


def test_days_of_other_years_mark_a_holiday():
    frame, target = riders()
    train = np.flatnonzero(DAYS.year != 2016)
    encoder, dense = encode(frame, target, train)
    assert encoder.feature_names[-1] == "day_recurring"
    assert encoder.feature_columns[-1] == 0
    feature, holiday = dense[:, -1], is_holiday(DAYS)
    for year in (2015, 2016):  # a year of the fit, and one that was left out
        inside = DAYS.year == year
        assert feature[inside & holiday].max() < 4 * feature[inside & ~holiday].min()


def test_only_fit_rows_are_looked_at_and_not_a_years_own():
    frame, target = riders()
    rows = np.flatnonzero(DAYS.year < 2018)
    _, before = encode(frame, target, rows)
    other = target.copy()
    other[DAYS.year >= 2018] = 1e3
    np.testing.assert_array_equal(before, encode(frame, other, rows)[1])
    place = int(np.flatnonzero(DAYS == "2015-03-09")[0])
    other = target.copy()
    other[place] += 0.5
    moved = np.abs(encode(frame, other, rows)[1] - before)[:, -1]
    same_day = (DAYS.month == 3) & (DAYS.day == 9) & (DAYS.year < 2018)
    assert moved[place] < 0.1 * moved[same_day].max()


def test_nothing_recurs_in_noise_in_few_years_or_without_the_target():
    frame, target = riders()
    plain = target + 6.0 * is_holiday(DAYS)
    assert "day_recurring" not in encode(frame, plain)[0].feature_names
    short = np.flatnonzero(DAYS.year >= 2018)
    encoder, _ = encode(frame.iloc[short], target[short])
    assert "day_recurring" not in encoder.feature_names
    encoder = TableEncoder(EncoderConfig())
    encoder.fit_transform(Table.from_native(frame))
    assert "day_recurring" not in encoder.feature_names
    encoder = TableEncoder(EncoderConfig(target_means=False))
    encoder.fit_transform(Table.from_native(frame), None, None, target[:, None])
    assert "day_recurring" not in encoder.feature_names


def test_a_missing_day_adds_nothing():
    frame, target = riders()
    frame.loc[::50, "day"] = pd.NaT
    encoder, dense = encode(frame, target)
    assert (dense[::50, encoder.feature_names.index("day_recurring")] == 0).all()


def test_each_target_and_each_date_column_has_its_own():
    frame, target = riders()
    frame["other"] = DAYS + pd.Timedelta(100, "D")
    both = np.stack([target, -2 * target], axis=1)
    encoder = TableEncoder(EncoderConfig())
    encoded = encoder.fit_transform(Table.from_native(frame), None, None, both)
    names = [name for name in encoder.feature_names if "recurring" in name]
    # What one column says of the days, the other need not say again.
    assert names == ["day_recurring", "day_recurring_"]
    one, two = encoded.dense.numpy()[:, [encoder.feature_names.index(n) for n in names]].T
    assert np.corrcoef(one, two)[0, 1] < -0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_models_keep_the_days(tmp_path: Path):
    frame, target = riders()
    train, test = DAYS.year < 2018, DAYS.year >= 2018
    options = {"n_ensemble": 1, "d_token": 8, "head_width": 16, "max_epochs": 12}
    model = TabNSMRegressor(**options, random_state=0).fit(frame[train], target[train])
    plain = TabNSMRegressor(**options, random_state=0, target_means=False)
    plain.fit(frame[train], target[train])
    late = test & is_holiday(DAYS)
    error, other = (np.abs(m.predict(frame[late]) - target[late]).mean() for m in (model, plain))
    assert error < 0.6 * other
    wanted = model.predict(frame[test])
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame[test]), wanted)
    model.export_onnx(tmp_path / "model")
    rows = {name: frame[test][name].tolist() for name in frame}
    found = ExportedModel(tmp_path / "model").predict(rows)
    assert np.abs(found - wanted).max() < 1e-4 * target.std()
    new = frame[test].assign(wind=np.random.default_rng(1).normal(size=test.sum()))
    refitted = model.refit(new, target[test])
    assert "day_recurring" in refitted.encoder_.feature_names
    assert np.isfinite(refitted.predict(new)).all()
