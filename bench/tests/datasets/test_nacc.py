from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets import load
from tabnsm_bench.datasets.nacc import read_nacc

VISITS = pd.DataFrame(
    {
        "naccid": ["NACC1", "NACC2", "NACC3", "NACC4"],
        "naccmmse": [30, 0, 95, -4],
        "mmseorda": [5, 0, 95, -4],
        "hippocampus": [3.1, -4.4, 2.9, 3.0],
        "sex": [1, 2, -4, 1],
        "tracer": ["FBB", "FTP", "FBB", "FTP"],
    }
)


def test_codes_become_missing_and_the_tests_own_items_go() -> None:
    frame = read_nacc(VISITS)
    assert list(frame.columns) == ["NACCMMSE", "HIPPOCAMPUS", "SEX", "TRACER"]
    np.testing.assert_array_equal(frame["NACCMMSE"], [30, 0, np.nan, np.nan])
    np.testing.assert_array_equal(frame["HIPPOCAMPUS"], [3.1, np.nan, 2.9, 3.0])
    np.testing.assert_array_equal(frame["SEX"], [1, 2, np.nan, 1])


def test_the_users_file_is_a_dataset(tmp_path: Path) -> None:
    VISITS.to_csv(tmp_path / "nacc_scan.csv", index=False)
    table = load("SC", tmp_path)
    np.testing.assert_array_equal(table.target, [30.0, 0.0])
    assert list(table.frame.columns) == ["HIPPOCAMPUS", "SEX", "TRACER"]
    assert table.n_file_rows == 4
    assert table.partial


def test_a_table_without_the_score_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="NACCMMSE"):
        read_nacc(VISITS.drop(columns="naccmmse"))
