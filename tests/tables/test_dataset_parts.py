"""Parts of a dataset have its rows, and are read without the rest."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from tabnsm.tables import Table
from tabnsm.tables.dataset_parts import can_be_parted
from tabnsm.work_folder import WorkFolder


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(100.0), "b": [f"s{k % 7}" for k in range(100)]})


def write(frame: pd.DataFrame, folder: Path, ending: str) -> None:
    for k, rows in enumerate((slice(0, 30), slice(30, 31), slice(31, 100))):
        part = frame[rows].reset_index(drop=True)
        if ending == "parquet":
            part.to_parquet(folder / f"year=200{k}" / f"{k}.parquet", row_group_size=10)
        else:
            part.to_feather(folder / f"year=200{k}" / f"{k}.feather")


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("kept", [None, np.array([0, 5, 29, 30, 33, 60, 99])])
def test_parts_have_all_rows(
    frame: pd.DataFrame, tmp_path: Path, ending: str, kept: np.ndarray | None
) -> None:
    for k in range(3):
        (tmp_path / f"year=200{k}").mkdir()
    write(frame, tmp_path, ending)
    table = Table.from_native(tmp_path)
    if kept is not None:
        table = table.take(kept)
    n, size = table.n_rows, 4
    parts = [table.part(n * k // size, n * (k + 1) // size) for k in range(size)]
    parts = pickle.loads(pickle.dumps(parts))
    assert sum(part.n_rows for part in parts) == n
    for name in ("a", "year"):
        wanted = table.column(name).to_float()
        assert np.array_equal(np.concatenate([p.column(name).to_float() for p in parts]), wanted)
    strings = [p.column("b").to_factor() for p in parts]
    found = [factor.values[code] for factor in strings for code in factor.codes]
    whole = table.column("b").to_factor()
    assert found == [whole.values[code] for code in whole.codes]


def test_only_the_row_groups_of_a_part_are_read(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=10)
    frame.to_parquet(tmp_path / "1.parquet", row_group_size=10)
    part = Table.from_native(tmp_path).part(95, 111)
    assert part.dataset is not None
    assert part.dataset.n_all_rows == 10 + 20
    assert len(list(part.dataset.dataset.get_fragments())) == 3
    (tmp_path / "0.parquet").unlink()
    alone = Table.from_native(tmp_path / "1.parquet").part(0, 3)
    assert alone.column("a").to_float().tolist() == [0, 1, 2]


def test_paths_do_not_depend_on_the_current_folder(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of a cluster have folders of their own."""
    frame.to_parquet(tmp_path / "0.parquet")
    monkeypatch.chdir(tmp_path)
    table = Table.from_native("0.parquet")
    assert not can_be_parted(ds.dataset("0.parquet"))
    monkeypatch.chdir("/")
    assert table.dataset is not None
    assert can_be_parted(table.dataset.dataset)
    assert table.part(2, 4).column("a").to_float().tolist() == [2, 3]


def test_a_filter_is_not_lost(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "0.parquet")
    dataset = ds.dataset(tmp_path)
    assert can_be_parted(dataset)
    assert not can_be_parted(dataset.filter(ds.field("a") > 50))
    assert not can_be_parted(ds.dataset(dataset.to_table()))


def test_another_process_does_not_get_the_folder_of_this_one(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    table = Table.from_native(tmp_path / "rows.parquet").with_folder(WorkFolder(tmp_path))
    assert table.part(10, 20).dataset.folder is not None
    sent = pickle.loads(pickle.dumps(table.part(10, 20)))
    assert sent.dataset.folder is None
    assert sent.column("b").to_factor().values == table.part(10, 20).column("b").to_factor().values
