from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from tabnsm.columns import TableEncoder
from tabnsm.columns.dense import number_blocks
from tabnsm.columns.schema import ColumnSpec
from tabnsm.tables import Table


def make_frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 7)), columns=list("abcdefg"))
    frame.loc[3:7, "b"] = np.nan
    frame["s"] = frame["c"].astype(str)
    frame["f"] = np.where(np.arange(30) % 2, np.nan, 1.0)  # only its indicator is a feature
    return frame


def test_small_blocks_give_the_same_bits(monkeypatch):
    table = Table.from_native(make_frame())
    whole = TableEncoder().fit_transform(table).dense
    for cells in (1, 60, 90):
        monkeypatch.setattr("tabnsm.columns.dense._BLOCK_CELLS", cells)
        assert torch.equal(TableEncoder().fit_transform(table).dense, whole)


def test_blocks_hold_few_columns_and_strings_come_last(monkeypatch):
    monkeypatch.setattr("tabnsm.columns.dense._BLOCK_CELLS", 90)
    table = Table.from_native(make_frame())
    specs = [ColumnSpec(k, name, "numeric") for k, name in enumerate(table.names)]
    blocks = list(number_blocks(table, specs, range(8)))
    assert [len(block) for block, _ in blocks] == [3, 3, 1, 1]
    assert [matrix.dtype == np.float64 for _, matrix in blocks] == [True] * 4
    np.testing.assert_array_equal(blocks[-1][1].ravel(), make_frame()["c"])
