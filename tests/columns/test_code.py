from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.code import are_place_codes
from tabnsm.tables import Table


def codes(n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    """Codes of which the second place is the target, among places of noise."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 5, n)
    tail = rng.integers(0, 10, (n, 4))
    words = [f"X{'ABCDE'[k]}{''.join(map(str, rest))}" for k, rest in zip(level, tail, strict=True)]
    return pd.DataFrame({"vin": words}), level.astype(float)


def encode(frame: pd.DataFrame, **options) -> tuple[TableEncoder, np.ndarray]:
    encoder = TableEncoder(EncoderConfig(**options))
    return encoder, encoder.fit_transform(Table.from_native(frame)).dense.numpy()


def test_each_place_that_varies_is_a_category():
    frame, level = codes()
    encoder, dense = encode(frame)
    assert [spec.kind for spec in encoder.specs] == ["code"]
    assert encoder.feature_names == [f"vin_{k}" for k in range(2, 7)]  # all begin with X
    assert encoder.category_sizes == (6, 11, 11, 11, 11)
    np.testing.assert_array_equal(dense[:, 0], level + 1)


def test_unseen_characters_other_lengths_and_missing_have_code_0():
    frame, _ = codes()
    encoder, _ = encode(frame)
    new = pd.DataFrame({"vin": ["XZ1234", "XA", None, "XA12345678"]})
    dense = encoder.transform(Table.from_native(new)).dense
    assert dense[:, 0].tolist() == [0, 1, 0, 1]
    assert dense[1, 1:].tolist() == [0, 0, 0, 0]
    assert (dense[3, 1:] > 0).all()


def test_state_encodes_the_same():
    frame, _ = codes()
    encoder, dense = encode(frame)
    again = TableEncoder.from_state(*encoder.to_state())
    np.testing.assert_array_equal(again.transform(Table.from_native(frame)).dense, dense)


@pytest.mark.parametrize(
    "values",
    [
        ["red 1234", "new 4321"],  # spaces
        ["abcdef", "ghijkl"],  # words
        ["a1", "b2"],  # too short
        ["a1b2", "a1b2c3", "a1b2c3d4"],  # of any length
        [],
    ],
)
def test_other_strings_are_no_codes(values):
    assert not are_place_codes(values)


def test_the_paper_knows_no_codes_and_users_can_ask_for_another_kind():
    frame, _ = codes()
    encoder, _ = encode(frame, column_kinds={"vin": "category"})
    assert [spec.kind for spec in encoder.specs] == ["category"]
    names = pd.DataFrame({"name": ["first", "second", "third", "fourth"] * 10})
    asked, _ = encode(names, column_kinds={"name": "code"})
    assert asked.n_features == 5


@pytest.mark.slow
def test_a_place_is_learned():
    frame, level = codes(800)
    model = TabNSMRegressor(preset="fast", max_epochs=10, random_state=0)
    model.fit(frame[:600], level[:600])
    assert model.score(frame[600:], level[600:]) > 0.9


def test_codes_that_say_nothing_are_left_out():
    frame, level = codes(600)
    frame["number"] = np.random.default_rng(1).normal(size=600)
    table = Table.from_native(frame)
    telling, silent = TableEncoder(), TableEncoder()
    telling.fit_transform(table, None, None, level[:, None])
    assert [spec.kind for spec in telling.specs] == ["code", "numeric"]
    encoded = silent.fit_transform(table, None, None, frame[["number"]].to_numpy())
    assert [spec.kind for spec in silent.specs] == ["drop", "numeric"]
    assert silent.feature_names == ["number"]
    assert encoded.dense.shape == (600, 1)
    alone = TableEncoder()
    alone.fit_transform(Table.from_native(frame[["vin"]]), None, None, frame[["number"]].to_numpy())
    assert alone.n_features == 5  # there is nothing else
