"""Shards are parts of the rows, and survive a file."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm.distributed.shard import Shard, read_shard, write_shard
from tabnsm.options import resolve_options
from tabnsm.training.prepare import FitRows, PreparedFit
from tests.fakes import FakeTextEncoder


@pytest.fixture(scope="module")
def prepared() -> PreparedFit:
    rng = np.random.default_rng(0)
    texts = ["a fine old house", "near the sea", "noisy street", "needs work", "new roof"]
    X = pd.DataFrame({"size": rng.normal(size=60), "text": [*texts * 12]})
    y = rng.normal(size=60)
    options = resolve_options(
        {"column_kinds": {"text": "text"}, "text_encoder": FakeTextEncoder(), "preset": "paper"}
    )
    return FitRows.collect(X, y, rng.uniform(1, 2, size=60), random_state=0).prepare(options)


def test_shards_have_all_rows_once(prepared: PreparedFit) -> None:
    whole = Shard.whole_fit(prepared)
    shards = [whole.cut(rank, 7) for rank in range(7)]
    every = torch.cat([s.prepared.data.train.gather(torch.arange(s.prepared.data.train.n_rows))
                       for s in shards])  # fmt: skip
    n_train = prepared.data.train.n_rows
    assert torch.equal(every, prepared.data.train.gather(torch.arange(n_train)))
    assert sum(s.prepared.data.validation.n_rows for s in shards) == 6
    assert min(s.prepared.data.validation.n_rows for s in shards) == 0
    weights = np.concatenate([s.prepared.data.train_weight for s in shards])
    assert np.mean(weights) == pytest.approx(1)
    assert {s.whole.n_rows for s in shards} == {n_train}


def test_a_shard_has_the_texts_of_its_rows_alone(prepared: PreparedFit) -> None:
    shard = Shard.whole_fit(prepared).cut(0, 27).prepared.data.train
    assert shard.n_rows == 2
    assert shard.n_texts <= 2


@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_shard_survives_a_file(prepared: PreparedFit, size: int) -> None:
    shard = Shard.whole_fit(prepared).cut(size - 1, size)
    file = io.BytesIO()
    write_shard(shard, file)
    read = read_shard(bytearray(file.getvalue()))
    assert read.whole == shard.whole
    assert read.losses == shard.losses
    for part in ("train", "validation"):
        before, after = (getattr(s.prepared.data, part) for s in (shard, read))
        assert torch.equal(before.dense, after.dense)
        assert torch.equal(before.gather(torch.arange(before.n_rows)),
                           after.gather(torch.arange(before.n_rows)))  # fmt: skip
    assert np.array_equal(read.prepared.data.train_target, shard.prepared.data.train_target)
