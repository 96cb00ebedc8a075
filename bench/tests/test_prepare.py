from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm_bench.datasets import Descriptor, LoadedTable, all_descriptors, load
from tabnsm_bench.prepare import prepare
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.splits import paper_split

N_ROWS = 300


def make_table(seed: int = 0) -> LoadedTable:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50, 10, N_ROWS),
            "age": np.where(rng.uniform(size=N_ROWS) < 0.1, np.nan, rng.normal(size=N_ROWS)),
            "shop": rng.choice(["north", "south", "west"], N_ROWS),
        }
    )
    target = rng.normal(100, 20, N_ROWS)
    return LoadedTable(frame, target, Descriptor("t", "t", "y"), Path("t.csv"), "", N_ROWS)


def test_arrays_frames_and_targets_are_the_same_rows() -> None:
    table = make_table()
    data, split, notes = prepare(table, RunSpec("m", "t"))
    assert notes == []
    for part, frame, rows in (
        (data.train, data.train_frame, split.train),
        (data.validation, data.validation_frame, split.validation),
        (data.test, data.test_frame, split.test),
    ):
        np.testing.assert_array_equal(part.y, table.target[rows])
        pd.testing.assert_frame_equal(frame, table.frame.iloc[rows].reset_index(drop=True))
        assert part.x.dtype == np.float32
        assert part.y.dtype == np.float64
        order = np.argsort(frame["size"].to_numpy())
        column = data.feature_names.index("size")
        assert (np.diff(part.x[order, column]) >= 0).all()


def test_statistics_are_those_of_the_training_rows() -> None:
    data, _, _ = prepare(make_table(), RunSpec("m", "t"))
    column = data.train.x[:, data.feature_names.index("size")]
    assert abs(column.mean()) < 1e-5
    assert abs(column.std() - 1) < 1e-4
    assert abs(data.test.x[:, data.feature_names.index("size")].mean()) > 1e-3


@pytest.mark.parametrize("encoding", ["paper", "default"])
def test_other_rows_leave_the_training_rows_as_they_are(encoding: str) -> None:
    table = make_table()
    other = table.frame.copy()
    held_out = np.setdiff1d(np.arange(N_ROWS), paper_split(N_ROWS).train)
    other.loc[held_out, "size"] = 1e6
    other.loc[held_out, "shop"] = "never seen"
    changed = LoadedTable(other, table.target, table.descriptor, table.path, "", N_ROWS)
    spec = RunSpec("m", "t", encoding=encoding)
    np.testing.assert_array_equal(
        prepare(table, spec)[0].train.x, prepare(changed, spec)[0].train.x
    )


def test_the_two_encodings() -> None:
    paper = prepare(make_table(), RunSpec("m", "t", encoding="paper"))[0]
    assert paper.feature_names == ("size", "age", "shop")
    assert paper.category_sizes == (0, 0, 0)
    default = prepare(make_table(), RunSpec("m", "t", encoding="default"))[0]
    assert default.feature_names == ("size", "age", "age_missing", "shop")
    size = default.category_sizes[3]
    assert default.category_sizes[:3] == (0, 0, 0)
    assert size >= 3
    assert set(np.unique(default.train.x[:, 3])) <= set(range(size))


def test_methods_that_take_frames_get_arrays_without_columns() -> None:
    data, split, _ = prepare(make_table(), RunSpec("m", "t"), encode=False)
    assert data.train.x.shape == (len(split.train), 0)
    assert data.feature_names == data.category_sizes == ()
    assert list(data.train_frame.columns) == ["size", "age", "shop"]


def test_fewer_training_rows_do_not_change_the_test_rows() -> None:
    _, whole, _ = prepare(make_table(), RunSpec("m", "t"))
    data, split, notes = prepare(make_table(), RunSpec("m", "t", sample_fraction=0.25))
    np.testing.assert_array_equal(split.test, whole.test)
    np.testing.assert_array_equal(split.validation, whole.validation)
    assert set(split.train) < set(whole.train)
    assert len(data.train.y) == len(split.train) == round(0.25 * len(whole.train))
    assert notes == ["54 of 216 training rows, drawn at random"]


def test_fewer_columns_and_rows() -> None:
    spec = RunSpec("m", "t", feature_fraction=0.5, max_rows=100)
    data, split, notes = prepare(make_table(), spec)
    assert data.train_frame.shape == (72, 2)
    assert len(split.train) + len(split.validation) + len(split.test) == 100
    assert notes == [
        "100 of 300 rows, drawn at random",
        "2 of 3 columns, drawn at random",
    ]


@pytest.mark.parametrize("name", ["CP", "sarcos_test4449", "qsar_solubility"])
def test_real_tables_have_the_features_that_are_expected(name: str, data_dir: Path) -> None:
    table = load(name, data_dir)
    data, _, _ = prepare(table, RunSpec("m", table.descriptor.key))
    assert len(data.feature_names) == all_descriptors(data_dir)[table.descriptor.key].features
