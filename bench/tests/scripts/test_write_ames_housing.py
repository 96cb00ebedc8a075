from __future__ import annotations

from pathlib import Path

import pytest

from bench.scripts.write_ames_housing import main
from tabnsm_bench.datasets import load


@pytest.mark.slow
def test_the_table_can_be_loaded_and_is_not_written_twice(tmp_path: Path) -> None:
    main(tmp_path / "data")
    table = load("ames_housing", tmp_path / "data")
    assert table.frame.shape == (2930, 73)
    assert table.target.min() > 10_000
    path = tmp_path / "data" / "ames_housing.csv"
    path.write_text("kept")
    main(tmp_path / "data")
    assert path.read_text() == "kept"
