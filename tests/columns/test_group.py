from __future__ import annotations

import numpy as np
import pytest
import torch

from tabnsm.columns import EncoderConfig
from tabnsm.columns.category import CategoryColumns
from tabnsm.columns.fitting import FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.number import NumberColumns
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.standardize import Standardizer

CONFIG = EncoderConfig()


def fitted() -> list[FittedColumn]:
    rng = np.random.default_rng(0)
    return [
        FittedColumn(ColumnSpec(0, "a", "numeric"), Standardizer.fit(rng.normal(size=(9, 1)))),
        FittedColumn(ColumnSpec(1, "c", "category")),
        FittedColumn(ColumnSpec(2, "gone", "drop")),
        FittedColumn(ColumnSpec(3, "b", "numeric"), Standardizer.fit(rng.normal(size=(9, 1)))),
    ]


def test_a_group_takes_the_columns_of_its_kind_and_their_statistics():
    columns = fitted()
    group = NumberColumns.from_fitted(columns, CONFIG)
    assert [spec.name for spec in group.specs] == ["a", "b"]
    assert group.statistics.center[1] == columns[3].standardizer.center[0]
    assert CategoryColumns.from_fitted(columns, CONFIG).statistics.center.shape == (0,)


def test_a_group_survives_its_state():
    columns = fitted()
    group = NumberColumns.from_fitted(columns, CONFIG)
    tensors, facts = group.to_state()
    again = NumberColumns.from_state([c.spec for c in columns], tensors, facts, CONFIG)
    assert again.specs == group.specs
    assert torch.equal(again.to_state()[0]["numeric"], tensors["numeric"])


def test_a_kind_without_features_is_none():
    class Unfinished(ColumnGroup):
        kind = "unfinished"

    with pytest.raises(TypeError, match="abstract"):
        Unfinished([], Standardizer.stack([]), CONFIG)
