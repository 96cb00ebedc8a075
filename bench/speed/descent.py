"""A training step whose update is one compiled pass, over the same step with torch's operators.

    OMP_NUM_THREADS=1 python bench/speed/descent.py

The update clips the gradient, steps AdamW and moves the average of the weights. Both sides are the
default's training step on one core, timed in turns; tables are as small and narrow as many are.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from measure import figure, in_turns, show
from model_step import cycle_batches
from sides import make_trainer, random_table

from tabnsm.kernels import AdamWKernel
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.descent import Descent

# Features and rows of a batch: tables of 1,000 to 8,000 rows have batches of 32 to 256.
SHAPES = ((8, 32), (8, 64), (32, 64), (32, 256), (115, 256), (400, 256))


def run(*, shapes: tuple[tuple[int, int], ...] = SHAPES, seconds: float = 4.0) -> dict[str, Any]:
    """Milliseconds of a step with either update, and their ratio."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [step_times(n_features, batch, seconds) for n_features, batch in shapes]
    finally:
        torch.set_num_threads(n_threads)
    figures = [
        figure(
            f"of the step with torch's update, D = {row['n_features']}, batch {row['batch']}",
            row["ratio"],
            "x",
            at_most=1.0,
        )
        for row in rows
    ]
    return {"settings": {"seconds": seconds}, "rows": rows, "figures": figures, "missing": []}


def step_times(n_features: int, batch: int, seconds: float) -> dict[str, Any]:
    """Both steps at one width, each on a model and a state of its own."""
    table = random_table(4 * batch, n_features)
    trainer, state = make_trainer(table, batch_size=batch)
    other = copy.deepcopy(state)
    other.optimizer.__class__ = ByTorch
    batches = cycle_batches(table.n_rows, batch)
    runs = {
        "one_pass_ms": lambda: trainer.train_step(state, next(batches)),
        "torch_ms": lambda: trainer.train_step(other, next(batches)),
    }
    for step in runs.values():
        step(), step()
    times = {name: 1e3 * value for name, value in in_turns(runs, seconds=seconds).items()}
    ratio = times["one_pass_ms"] / times["torch_ms"]
    return {"n_features": n_features, "batch": batch, **times, "ratio": ratio}


class ByTorch(Descent):
    """The same update by the operators that serve where the kernel does not."""

    def _prepare(self, average: WeightAverage) -> AdamWKernel | None:
        return None


if __name__ == "__main__":
    show(run())
