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
