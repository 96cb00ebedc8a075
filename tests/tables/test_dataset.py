"""Datasets of files: what is read, and what is refused before any work."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table
from tabnsm.tables.dataset import find_files, is_dataset, open_dataset


def frame_of(n_rows: int = 10) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(n_rows) < 0.3, np.nan, np.arange(n_rows)),
            "count": np.arange(n_rows),
            "flag": [True, None] * (n_rows // 2),
            "word": [None if k % 4 == 0 else f"v{k % 3}" for k in range(n_rows)],
            "kind.of": pd.Categorical(list("xyxyxyxyxz")[:n_rows]),
            "day": pd.date_range("2020", periods=n_rows),
        }
    )


def write(frame: pd.DataFrame, folder, n_files: int = 3, **options):
    folder.mkdir(exist_ok=True)
    for k, part in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[part].to_parquet(folder / f"{k}.parquet", row_group_size=2, **options)
    return folder


def test_columns_are_those_of_the_frame(tmp_path):
    frame = frame_of()
    found = Table.from_native(write(frame, tmp_path / "data"))
    expected = Table.from_native(frame)
    assert found.names == expected.names
    assert found.n_rows == 10
    for name in found.names:
        one, other = found.column(name), expected.column(name)
        assert one.storage == other.storage
        assert (one.to_factor().codes == other.to_factor().codes).all()
        assert one.to_factor().values == other.to_factor().values
    positions = [0, 1]
    np.testing.assert_array_equal(found.numbers(positions), expected.numbers(positions))


def test_rows_and_columns_can_be_chosen(tmp_path):
    table = Table.from_native(write(frame_of(), tmp_path / "data"))
    some = table.without(["count"]).take(np.array([1, 4, 9])).take(np.array([0, 2]))
    assert some.names == ["number", "flag", "word", "kind.of", "day"]
    assert some.column("word").to_factor().values == ["v1", "v0"]
    assert sum(len(batch) for batch in table.dataset.batches(4)) == 10
    assert max(len(batch) for batch in table.dataset.batches(1)) == 1
    rows = pa.concat_tables(some.dataset.batches(1000))
    assert rows["word"].to_pylist() == ["v1", "v0"]


def test_a_file_a_folder_a_pattern_and_a_dataset_are_the_same(tmp_path):
    frame = frame_of()
    folder = write(frame, tmp_path / "data")
    frame.to_feather(tmp_path / "one.arrow")
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("not a table")
    for source in (
        folder,
        str(folder),
        f"{folder}/*.parquet",
        ds.dataset(f"{folder}/0.parquet"),
        tmp_path / "one.arrow",
    ):
        assert is_dataset(source)
        assert Table.from_native(source).names == list(frame.columns)
    assert not is_dataset(frame)


def test_subfolders_that_name_a_value_add_a_column(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        frame_of().to_parquet(tmp_path / f"year={year}" / "a.parquet")
    table = Table.from_native(tmp_path)
    assert table.numbers([table.position("year")])[:, 0].tolist() == [2023.0] * 10 + [2024.0] * 10


def test_the_index_of_pandas_is_no_column(tmp_path):
    frame_of().iloc[[3, 1]].to_parquet(tmp_path / "a.parquet")
    assert Table.from_native(tmp_path).names == list(frame_of().columns)


def test_numbers_of_several_types_take_the_wider_one(tmp_path):
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"a": [0.5, None]}).to_parquet(tmp_path / "b.parquet")
    table = Table.from_native(tmp_path)
    np.testing.assert_array_equal(table.numbers([0])[:, 0], [1, 2, 0.5, np.nan])


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": ["x"], "b": [1]}, r"column 'a' holds int64 in .*a\.parquet and .*string in .*b\.pa"),
        ({"a": [1]}, r"b\.parquet has no column 'b', which .*a\.parquet has"),
        ({"a": [1], "b": [1], "c": [1]}, r"a\.parquet has no column 'c', which .*b\.parquet has"),
    ],
)
def test_files_that_differ_are_refused(tmp_path, second, message):
    pd.DataFrame({"a": [1], "b": [2]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame(second).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidDataError, match=message):
        open_dataset(tmp_path)


def test_what_is_no_dataset(tmp_path):
    with pytest.raises(InvalidDataError, match="is an empty folder"):
        find_files(tmp_path)
    with pytest.raises(InvalidDataError, match="matches no file"):
        find_files(tmp_path / "*.parquet")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(InvalidDataError, match=r"must have files that end in .parquet.*t\.csv"):
        find_files(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(InvalidDataError, match="is not a whole Parquet file"):
        open_dataset(tmp_path)
    (tmp_path / "a.parquet").unlink()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"a": [1]}).to_feather(tmp_path / "b.feather")
    with pytest.raises(InvalidDataError, match="files of one kind"):
        open_dataset(tmp_path)
    nested = pa.table({"a": [[1, 2]]})
    with pytest.raises(InvalidDataError, match="A cell must hold one value"):
        open_dataset(ds.dataset(nested))


def test_files_must_not_change(tmp_path):
    table = Table.from_native(write(frame_of(), tmp_path / "data"))
    path = tmp_path / "data" / "1.parquet"
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidDataError, match=r"must not change while it is read, but .*1\.par"):
        table.numbers([0])


def test_a_damaged_file_is_reported(tmp_path):
    folder = write(frame_of(), tmp_path / "data", compression=None)
    content = bytearray((folder / "1.parquet").read_bytes())
    content[4:200] = b"\xff" * 196
    (folder / "1.parquet").write_bytes(content)
    table = Table.from_native(folder)
    with pytest.raises(InvalidDataError, match="pyarrow reports"):
        [table.numbers([position]) for position in (0, 1)]


def test_two_columns_of_one_name(tmp_path):
    """Also in a file after the first."""
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "1.parquet")
    twice = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
    pq.write_table(twice, tmp_path / "2.parquet")
    with pytest.raises(InvalidDataError, match=r"different names, but .*2\.parquet has 'a' more"):
        open_dataset(tmp_path)


def test_a_column_that_is_also_a_folder(tmp_path):
    (tmp_path / "k=1").mkdir()
    pq.write_table(pa.table({"k": [1], "b": [2]}), tmp_path / "k=1" / "x.parquet")
    with pytest.raises(InvalidDataError, match=r"x\.parquet has a column 'k' and is in .*'k=1'"):
        open_dataset(tmp_path)


def test_an_arrow_stream_is_no_file(tmp_path):
    table = pa.table({"a": [1]})
    with pa.ipc.new_stream(str(tmp_path / "t.arrow"), table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(InvalidDataError, match=r"t\.arrow is an Arrow stream. Write it as a file"):
        open_dataset(tmp_path)
