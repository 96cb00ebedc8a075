from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from tabnsm.columns import TableEncoder
from tabnsm.columns.matched import MatchedTable
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
        monkeypatch.setattr("tabnsm.columns.matched._BLOCK_CELLS", cells)
        assert torch.equal(TableEncoder().fit_transform(table).dense, whole)


def test_blocks_hold_few_columns_and_strings_come_last(monkeypatch):
    monkeypatch.setattr("tabnsm.columns.matched._BLOCK_CELLS", 90)
    table = MatchedTable.at_fit(Table.from_native(make_frame()))
    specs = [ColumnSpec(k, name, "numeric") for k, name in enumerate(table.table.names)]
    blocks = list(table.number_blocks(specs))
    assert [len(block) for block, _, _ in blocks] == [3, 3, 1, 1]
    assert [matrix.dtype == np.float64 for _, matrix, _ in blocks] == [True] * 4
    np.testing.assert_array_equal(blocks[-1][1].ravel(), make_frame()["c"])


def test_columns_are_found_where_they_are_now():
    frame = make_frame()[["s", "a"]]
    table = MatchedTable(Table.from_native(frame), [1, 0])
    a, s = ColumnSpec(0, "a", "numeric"), ColumnSpec(1, "s", "numeric")
    assert table.column(s).storage == "string"
    values = {block[0].name: matrix.ravel() for block, matrix, _ in table.number_blocks([s, a])}
    np.testing.assert_array_equal(values["a"], frame["a"])
    np.testing.assert_array_equal(values["s"], make_frame()["c"])
