from __future__ import annotations

import numpy as np
import pandas as pd

from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.columns.fitting import ColumnToFit, FitScope
from tabnsm.columns.number import NumberColumns
from tabnsm.tables import Table
from tabnsm.tables.column import Column
from tabnsm.tables.objects import from_objects


def to_fit(values: list[object], **options: object) -> ColumnToFit:
    scope = FitScope(EncoderConfig(**options), None)
    return ColumnToFit(Column("c", from_objects("c", values)), 0, scope)


def test_strings_and_dates_are_left_to_other_kinds():
    assert NumberColumns.fit(to_fit(["a", "b"] * 20)) is None
    assert NumberColumns.fit(to_fit([np.datetime64("2024-01-01"), None])) is None
    fitted = NumberColumns.fit(to_fit(["$1,000", "$2,500"]))
    assert fitted is not None
    assert fitted.spec.number_format.prefix == "$"
    assert fitted.standardizer is not None
    assert fitted.standardizer.center[0] == 1750


def test_statistics_belong_to_the_columns_that_have_a_value():
    """A column of which only the indicator is a feature must not shift the others' statistics."""
    n = np.arange(20.0)
    frame = pd.DataFrame({"a": n, "hole": np.where(n < 5, np.nan, 1.0), "b": 1000 + 10 * n})
    encoder = TableEncoder()
    dense = encoder.fit_transform(Table.from_native(frame)).dense
    assert encoder.feature_names == ["a", "b", "hole_missing"]
    np.testing.assert_array_equal(dense[:, 0], dense[:, 1])
    np.testing.assert_array_equal(dense[:, 2], n < 5)


def test_strings_between_numbers_keep_the_order_of_the_table():
    n = np.arange(20.0)
    frame = pd.DataFrame({"a": n, "s": [f"{k} kg" for k in n[::-1]], "b": n**2})
    dense = TableEncoder().fit_transform(Table.from_native(frame)).dense
    np.testing.assert_allclose(dense[:, 1], -dense[:, 0], atol=1e-6)
    assert dense[-1, 2] == dense[:, 2].max()
