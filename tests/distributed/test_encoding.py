"""Rows that are encoded where they are needed are those of one machine."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.columns.encoded import EncodedTable
from tabnsm.distributed import encoding
from tabnsm.distributed.encoding import ClusterEncoding, ClusterTable
from tabnsm.distributed.shard import Shard
from tabnsm.options import resolve_options
from tabnsm.training.prepare import FitRows, PreparedFit, Validation, encode_dataset
from tabnsm.work_folder import WorkFolder, work_folder
from tests.fakes import FakeTextEncoder

N_ROWS = 500


class Tasks:
    """Runs tasks here, on copies of what they are sent, in place of a cluster's."""

    def __init__(self, *_: Any) -> None:
        self.n_tasks = 0

    def __call__(
        self, title: str, function: Callable[..., Any], given: Any, shares: Sequence[Any]
    ) -> list[Any]:
        self.n_tasks += len(shares)
        sent = pickle.dumps((given, list(shares)))
        return [function(pickle.loads(sent)[0], share) for share in pickle.loads(sent)[1]]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"])
    table["text"] = [f"word{k} of {k % 5}" for k in rng.integers(0, 90, N_ROWS)]
    table["when"] = rng.uniform(0, 1, N_ROWS)
    table["y"] = table.a * table.b + 0.1 * table.c
    folder = tmp_path / "data"
    folder.mkdir()
    for k, rows in enumerate((slice(0, 7), slice(7, 400), slice(400, None))):
        table[rows].to_parquet(folder / f"{k}.parquet", row_group_size=50)
    return folder


def prepare(data: Any, folder: WorkFolder, validation: Validation, on_cluster: bool) -> PreparedFit:
    kinds = {"text": "text"}
    given = {"preset": "paper", "text_encoder": FakeTextEncoder(8), "column_kinds": kinds}
    options = resolve_options({**given, "n_bins": 4, "target_means": True})
    token = encode_dataset.set(ClusterEncoding(None, 2, 1)) if on_cluster else None
    try:
        rows = FitRows.collect(data, "y", None, validation, 0, folder)
        return rows.prepare(options)
    finally:
        if token is not None:
            encode_dataset.reset(token)


def whole(table: EncodedTable) -> torch.Tensor:
    return table.gather(torch.arange(table.n_rows))


@pytest.mark.slow
@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize(
    "validation", [Validation(), Validation(validation_time="when")], ids=["random", "time"]
)
def test_a_cluster_prepares_the_fit_of_one_machine(
    data: Path, monkeypatch: pytest.MonkeyPatch, validation: Validation, is_large: bool
) -> None:
    monkeypatch.setattr(encoding, "RayTasks", Tasks)
    monkeypatch.setattr(encoding, "_TASK_CELLS", 200)
    if is_large:
        monkeypatch.setattr(encoding, "LARGE_CELLS", 10)
    with work_folder(None) as here, work_folder(None) as there:
        one = prepare(data, here, validation, on_cluster=False)
        many = prepare(data, there, validation, on_cluster=True)
        assert isinstance(many.data.train, ClusterTable)
        assert many.options.to_dict() == one.options.to_dict()
        assert torch.equal(many.generator_state, one.generator_state)
        assert np.array_equal(many.data.train_target, one.data.train_target)
        sample = torch.tensor([5, 0, 300, 5])
        assert torch.equal(whole(many.data.train.take(sample)), whole(one.data.train.take(sample)))
        assert torch.equal(whole(many.data.validation), whole(one.data.validation))
        assert torch.equal(many.data.train.gather(sample), one.data.train.gather(sample))
        assert many.data.train.n_features == one.data.train.n_features
        # What three workers encode is all of it, each row once, in order.
        parts = []
        for rank in range(3):
            shard = Shard.whole_fit(many).cut(rank, 3)
            own = pickle.loads(pickle.dumps(many.data.train.source.of_worker(rank, 3)))
            with work_folder(None) as place:
                encoded = own.encode(shard.prepared.data, place)
                parts.append([whole(encoded.train), whole(encoded.validation)])
        assert torch.equal(torch.cat([train for train, _ in parts]), whole(one.data.train))
        assert torch.equal(torch.cat([held for _, held in parts]), whole(one.data.validation))


def test_given_rows_to_validate_on_are_encoded_here(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "RayTasks", Tasks)
    validation = Validation(X_val=data / "0.parquet", y_val="y")
    with work_folder(None) as folder:
        fit = prepare(data, folder, validation, on_cluster=True)
        assert fit.data.validation.n_rows == 7
        assert fit.data.train.n_rows == N_ROWS
        shards = [Shard.whole_fit(fit).cut(rank, 2).prepared.data for rank in range(2)]
        assert [shard.validation.dense.shape[1] for shard in shards] == [4, 4]
        assert [shard.train.dense.shape[1] for shard in shards] == [0, 0]


def test_a_worker_without_rows_has_features(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "RayTasks", Tasks)
    with work_folder(None) as folder, work_folder(None) as place:
        fit = prepare(data, folder, Validation(), on_cluster=True)
        assert isinstance(fit.data.train, ClusterTable)
        size = N_ROWS + 5
        shard = Shard.whole_fit(fit).cut(0, size)
        encoded = fit.data.train.source.of_worker(0, size).encode(shard.prepared.data, place)
        assert encoded.train.n_rows == encoded.validation.n_rows == 0
        assert encoded.train.n_features == fit.encoder.n_features


def test_a_dataset_with_a_filter_is_encoded_here(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.dataset as ds

    monkeypatch.setattr(encoding, "RayTasks", Tasks)
    some = ds.dataset(data).filter(ds.field("a") > 0)
    with work_folder(None) as folder:
        fit = prepare(some, folder, Validation(), on_cluster=True)
        assert not isinstance(fit.data.train, ClusterTable)
        assert fit.data.train.n_rows < N_ROWS
