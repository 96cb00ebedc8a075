from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table

pytestmark = pytest.mark.usefixtures("one_network")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=80),
            "rooms": rng.integers(1, 6, 80),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 80),
            "sold": pd.date_range("2024-01-01", periods=80),
        }
    )
    frame.loc[::7, "size"] = np.nan
    return frame


@pytest.mark.slow
@pytest.mark.parametrize(
    "convert",
    [
        lambda series: series,
        lambda series: series.to_numpy(),
        lambda series: series.tolist(),
        lambda series: tuple(series),
        lambda series: pl.Series(series.tolist()),
        lambda series: pa.array(series, from_pandas=True),
        lambda series: pa.chunked_array([pa.array(series, from_pandas=True)]),
    ],
    ids=["pandas", "numpy", "list", "tuple", "polars", "arrow", "chunked"],
)
def test_a_dict_of_columns_is_the_same_table(frame: pd.DataFrame, convert: Any) -> None:
    y = frame["rooms"] + 0.1 * frame["size"].fillna(0)
    options = {"max_epochs": 1, "d_token": 8, "random_state": 0}
    columns = {name: convert(frame[name]) for name in frame}
    model = TabNSMRegressor(**options).fit(columns, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    expected = TabNSMRegressor(**options).fit(frame, y).predict(frame)
    np.testing.assert_array_equal(model.predict(frame), expected)
    backwards = OrderedDict(reversed(columns.items()))
    np.testing.assert_array_equal(model.predict(backwards), expected)


def test_names_that_are_no_strings_are_like_those_of_an_array() -> None:
    table = Table.from_native({0: range(3), 1: [None, "a", "b"]})
    assert (table.names, table.has_names) == (["0", "1"], False)
    assert table.column("1").to_factor().values == ["a", "b"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"a": [1, 2], "b": [1, 2], "c": [1]}, "one length, got 2 .* for 'a' and 1 for 'c'. Pass"),
        ({"a": 5.0, "b": "x"}, r"got 5.0 \(float\) for 'a'. A table of one row .* {'a': \[...\]}"),
        ({"a": "x" * 1000}, r"1-D array .* \(str\) for 'a'"),
        ({"a": None}, r"got None \(NoneType\)"),
        ({"a": {"b": [1]}}, r"\(dict\) for 'a'"),
        ({"a": {1, 2}}, r"\(set\) for 'a'"),
        ({"a": np.eye(2)}, r"got an array of dtype float64 and shape \(2, 2\) for 'a'"),
        ({"a": np.float64(1.0)}, r"got an array of dtype float64 and shape \(\) for 'a'"),
        ({"a": np.ones(3) * 1j}, "dtype complex128"),
        ({}, r"0 sample\(s\)"),
        ({"a": []}, r"0 sample\(s\)"),
    ],
)
def test_what_is_no_column_is_refused(bad: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidDataError, match=message) as caught:
        TabNSMRegressor().fit(bad, [1.0, 2.0])
    assert len(str(caught.value)) < 300
