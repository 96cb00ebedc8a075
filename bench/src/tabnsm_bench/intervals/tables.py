"""The tables and splits of the study of intervals, fixed before its first run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tabnsm_bench.suite.tables import SHARED, SuiteTable, read_table

TABLES = {
    "ames_housing": SuiteTable(SHARED, "ames_housing", "price"),
    "bike_sharing_hour": SuiteTable(SHARED, "bike_sharing_hour", "cnt", (), 6_000),
    "california_housing": SuiteTable(SHARED, "california_housing", "MedHouseVal", (), 6_000),
    "cpu_small": SuiteTable(SHARED, "cpu_small", "usr", (), 6_000),
    "diamonds": SuiteTable("ggplot2", "diamonds", "price", (), 6_000),
    "sarcos": SuiteTable(SHARED, "sarcos_test4449", "V22"),
}
N_SPLITS = 5
TEST_SHARE = 0.2


def split_table(name: str, split: int, shared: Path) -> tuple[Any, Any, Any, Any]:
    """Rows to fit on and to test on, drawn at random.

    Parameters
    ----------
    name : str
    split : int
        Seed of the draw.
    shared : Path
        As in `read_table`.

    Returns
    -------
    tuple of DataFrame, ndarray, DataFrame and ndarray
        Columns and target of the rows to fit on, then those of the test rows.
    """
    table = TABLES[name]
    frame, gone = read_table(table, shared)
    order = np.random.default_rng(split).permutation(len(frame))
    n_test = round(TEST_SHARE * len(frame))
    y = frame[table.target].to_numpy(dtype=np.float64)
    X = frame.drop(columns=[table.target, *gone])
    test, fit = order[:n_test], order[n_test:]
    return X.iloc[fit], y[fit], X.iloc[test], y[test]
