"""One step of training in each process of a group; run under torchrun by test_trainer.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tabnsm.distributed import process_group
from tabnsm.distributed.group import Group
from tabnsm.distributed.sampler import ShardSampler
from tabnsm.distributed.shard import Shard
from tabnsm.distributed.trainer import ShardTrainer, begin_network
from tabnsm.options import resolve_options
from tabnsm.training.prepare import FitRows, PreparedFit

# The paper's loss is the blend whatever the target, with a range that depends on the batch.
OPTIONS = {"preset": "paper", "gradient_clip": 1e9, "loss": "blend"}


def prepared(n_targets: int) -> PreparedFit:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a", "b", "c", "d"])
    y = np.stack([X.a * X.b + 3 * X.c**3, X.d.where(X.index % 4 > 0)], axis=1)
    options = resolve_options(OPTIONS)
    y_of = y[:, 0] if n_targets == 1 else y
    return FitRows.collect(X, y_of, random_state=0).prepare(options)


def gradients(n_targets: int, parts: list[list[int]]) -> dict[str, torch.Tensor]:
    """Of the weights after one step in which this process has the rows `parts[rank]`."""
    device = torch.device("cpu")
    group = Group(device)
    shard = Shard.whole_fit(prepared(n_targets))
    state = begin_network(shard, 0, group, device)
    trainer = ShardTrainer(shard, group, device)
    trainer.wrap(state)
    assert isinstance(state.sampler, ShardSampler)
    state.sampler.step_rows = [sum(map(len, parts))]
    trainer.train_step(state, torch.tensor(parts[group.rank], dtype=torch.int64))
    return {
        name: weight.grad.clone()
        for name, weight in state.model.named_parameters()
        if weight.grad is not None
    }


if __name__ == "__main__":
    cases = {
        "uneven": (1, [list(range(20)), list(range(20, 54))]),
        "empty": (1, [list(range(54)), []]),
        "several": (2, [list(range(30)), list(range(30, 54))]),
    }
    with process_group():
        for name, (n_targets, parts) in cases.items():
            found = gradients(n_targets, parts)
            if os.environ["RANK"] == "0":
                torch.save(found, Path(sys.argv[1]) / f"{name}.pt")
    # Threads that outlive Python abort the process.
    threads = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in threads if "gloo" in name], threads
