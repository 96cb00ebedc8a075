from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.errors import TabNSMWarning
from tabnsm.tables import Table

FRAME = pd.DataFrame({"c": ["b", "a", None, "b"] * 5, "n": np.arange(20.0)})
NEW = pd.DataFrame({"c": ["a", "b", None, "new"], "n": [0.0, 1, 2, 3]})


def codes_of(encoding: str) -> list[float]:
    encoder = TableEncoder(EncoderConfig(category_encoding=encoding))
    encoder.fit_transform(Table.from_native(FRAME))
    return encoder.transform(Table.from_native(NEW)).dense[:, -1].tolist()


def test_codes_to_embed_are_whole_numbers():
    assert codes_of("embedding") == [1, 2, 3, 0]


def test_standardised_codes_have_the_statistics_of_the_fit_rows():
    codes = np.array([2, 1, 3, 2])
    expected = (np.array([1, 2, 3]) - codes.mean()) / codes.std()
    found = codes_of("code")
    np.testing.assert_allclose(found[:3], expected, rtol=1e-6)
    assert found[3] == 0  # an unseen value is the mean


@pytest.mark.parametrize("encoding", ["embedding", "code"])
def test_mostly_unseen_values_are_reported(encoding):
    encoder = TableEncoder(EncoderConfig(category_encoding=encoding))
    encoder.fit_transform(Table.from_native(FRAME))
    with pytest.warns(TabNSMWarning, match=r"Most values of 'c' are not in the training rows"):
        encoder.transform(Table.from_native(NEW.assign(c="new")))


def many_codes() -> pd.DataFrame:
    """600 codes, each in ten rows; their second place has three letters."""
    words = [f"X{'ABC'[k % 3]}{k:03d}" for k in range(600)]
    return pd.DataFrame({"vin": words * 10, "n": np.arange(6000.0)})


def test_many_codes_have_a_feature_for_the_value_and_one_per_place():
    encoder = TableEncoder(EncoderConfig())
    encoder.fit_transform(Table.from_native(many_codes()))
    assert [spec.kind for spec in encoder.specs] == ["category", "numeric"]
    assert encoder.feature_names == ["n", "vin", "vin_2", "vin_3", "vin_4", "vin_5"]
    assert encoder.category_sizes == (0, 601, 4, 7, 11, 11)
    new = pd.DataFrame({"vin": ["XB999", "XC", None], "n": 0.0})
    found = encoder.transform(Table.from_native(new)).dense[:, 1:].tolist()
    assert found == [[0, 2, 0, 10, 10], [0, 3, 0, 0, 0], [0, 0, 0, 0, 0]]
    again = TableEncoder.from_state(*encoder.to_state())
    assert again.transform(Table.from_native(new)).dense[:, 1:].tolist() == found


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (many_codes()[lambda f: f.vin < "XC"], {}),  # 400 values
        (many_codes(), {"column_kinds": {"vin": "category"}}),
        (many_codes(), {"category_encoding": "code"}),
        (many_codes().assign(vin=lambda f: f.vin.str.replace("X", "a word ")), {}),
    ],
)
def test_other_categories_have_one_feature(frame, options):
    encoder = TableEncoder(EncoderConfig(**options))
    encoder.fit_transform(Table.from_native(frame))
    assert encoder.n_features == 2
