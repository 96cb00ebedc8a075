from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.extending import ExtendedEncoder, extend_encoder
from tabnsm.errors import InvalidDataError, TabNSMWarning
from tabnsm.tables import Table


def early() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=80),
            "city": rng.choice(["Oslo", "Rome", None], 80),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 90, 80), "D"),
        }
    )
    frame.loc[3, "size"] = np.nan
    return frame


def fitted(frame: pd.DataFrame, **options) -> TableEncoder:
    encoder = TableEncoder(EncoderConfig(**options))
    encoder.fit_transform(Table.from_native(frame), None)
    return encoder


def extend(encoder: TableEncoder, frame: pd.DataFrame, rows=None) -> ExtendedEncoder:
    return extend_encoder(encoder, Table.from_native(frame), rows)


def test_known_rows_are_encoded_as_before():
    frame = early()
    encoder = fitted(frame)
    later = frame.assign(city=np.where(np.arange(80) % 2, "Lima", frame["city"]), size=9.0)
    extended = extend(encoder, later)
    before = encoder.transform(Table.from_native(frame)).dense
    after = extended.encoder.transform(Table.from_native(frame)).dense[:, extended.place_of]
    city = encoder.category_sizes.index(max(encoder.category_sizes))
    moved = torch.from_numpy(extended.code_of[city])[before[:, city].long()].float()
    assert torch.equal(after[:, city], moved)
    others = [k for k in range(encoder.n_features) if k != city]
    assert torch.equal(after[:, others], before[:, others])
    assert extended.encoder.category_sizes[city] == encoder.category_sizes[city] + 1
    assert encoder.specs[1].vocabulary == ("Oslo", "Rome")  # the given encoder stays as it is
    assert torch.equal(extended.encoder.bins, encoder.bins)


def test_ranges_grow_by_the_rows_that_may_be_looked_at():
    frame = early()
    later = frame.assign(size=np.where(np.arange(80) < 40, 8.0, 1e6))
    extended = extend(fitted(frame), later, np.arange(40))
    with pytest.warns(TabNSMWarning, match="size"):  # rows that validate do not widen it
        dense = extended.encoder.transform(Table.from_native(later)).dense[:, 0]
    value = (8.0 - np.nanmean(frame["size"])) / np.nanstd(frame["size"])
    assert dense[0].item() == pytest.approx(value, rel=1e-5)
    assert dense[-1].item() < 1.3 * value


def test_only_training_rows_give_categories():
    frame = early()
    later = frame.assign(city=np.where(np.arange(80) < 40, "Lima", "Cairo"))
    extended = extend(fitted(frame), later, np.arange(40))
    assert extended.encoder.specs[1].vocabulary == ("Oslo", "Rome", "Lima")


def test_new_columns_have_features_and_bins_of_their_own():
    frame = early()
    encoder = fitted(frame)
    later = frame.assign(rooms=np.arange(80.0) % 7, kind=np.where(np.arange(80) % 2, "a", "b"))
    with pytest.warns(TabNSMWarning, match=r"2 column\(s\) that the model does not know.*'rooms'"):
        extended = extend(encoder, later)
    names = [extended.encoder.feature_names[k] for k in extended.added]
    assert names == ["rooms", "kind"]
    kept = torch.from_numpy(extended.place_of)
    width = encoder.bins.shape[2]
    assert torch.equal(extended.encoder.bins[kept, :, :width], encoder.bins)
    rooms = extended.encoder.bins[extended.added[0], 0]
    assert torch.isfinite(rooms).sum() == 6
    rows = extended.encoder.transform(Table.from_native(frame)).dense  # without them
    assert (rows[:, extended.added[0]] == 0).all()  # missing, as is what is not there


def test_new_text_is_left_out_with_one_warning():
    frame = early()
    later = frame.assign(note=[f"the house number {k}" for k in range(80)])
    with pytest.warns(TabNSMWarning) as found:
        extended = extend(fitted(frame), later)
    assert ["is free text, which a refit cannot add" in str(each.message) for each in found] == [
        True
    ]
    assert len(extended.added) == 0
    assert extended.encoder.specs[3].kind == "drop"


def test_an_absent_column_is_missing_from_then_on():
    frame = early()
    with pytest.warns(TabNSMWarning, match="no column named 'city'.*taken as missing"):
        extended = extend(fitted(frame), frame.drop(columns="city"))
    table = Table.from_native(frame.drop(columns=["city"]))
    assert extended.encoder.transform(table).n_rows == 80
    state = extended.encoder.to_state()
    again = TableEncoder.from_state(*state)
    assert torch.equal(again.transform(table).dense, extended.encoder.transform(table).dense)
    with pytest.raises(InvalidDataError, match="got none named 'size'"):
        extended.encoder.transform(Table.from_native(frame.drop(columns="size")))


def test_means_of_the_target_follow_their_category():
    rng = np.random.default_rng(0)
    school = np.repeat(np.arange(100), 10)
    effect = rng.normal(size=100)
    names = np.array([f"school {k}" for k in range(100)], dtype=object)[school]
    frame = pd.DataFrame({"x": rng.normal(size=1000), "school": names})
    frame.loc[::50, "school"] = None
    target = effect[school] + 0.1 * rng.normal(size=1000)
    encoder = TableEncoder(EncoderConfig(column_kinds={"school": "category"}))
    encoder.fit_transform(Table.from_native(frame), None, target=target[:, None])
    assert len(encoder.target_mean_features) == 1
    later = frame.assign(school=["school 7", "a new one"] * 500)
    extended = extend(encoder, later)
    before, after = (
        each.transform(Table.from_native(frame)).dense for each in (encoder, extended.encoder)
    )
    place = extended.place_of[encoder.target_mean_features[0]]
    assert torch.equal(after[:, place], before[:, encoder.target_mean_features[0]])


def test_arrays_have_no_names_to_match():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    encoder = TableEncoder(EncoderConfig())
    encoder.fit_transform(Table.from_native(rows), None)
    extended = extend_encoder(encoder, Table.from_native(10 * rows), None)
    assert len(extended.added) == 0
    with pytest.raises(InvalidDataError, match="expecting 2 features"):
        extend_encoder(encoder, Table.from_native(rows[:, :1]), None)


def test_places_of_codes_stay_when_a_category_is_new():
    words = [f"X{'ABC'[k % 3]}{k:03d}" for k in range(600)]
    frame = pd.DataFrame({"vin": [*words * 10, None], "n": np.arange(6001.0)})
    encoder = fitted(frame)
    later = pd.DataFrame({"vin": ["XA999", None] * 20, "n": 1.0})
    extended = extend(encoder, later)
    before = encoder.transform(Table.from_native(frame)).dense
    after = extended.encoder.transform(Table.from_native(frame)).dense[:, extended.place_of]
    places = [k for k, name in enumerate(encoder.feature_names) if name.startswith("vin_")]
    assert len(places) == 4
    assert torch.equal(after[:, places], before[:, places])
    for k in places:
        np.testing.assert_array_equal(extended.code_of[k], np.arange(encoder.category_sizes[k]))
    whole = encoder.feature_names.index("vin")
    assert extended.code_of[whole][-1] == 602  # of missing values
