"""A training step by the kernels alone, over the same step with torch's operators in their place.

    OMP_NUM_THREADS=1 python bench/speed/kernel_step.py

One side leaves the update to torch: clipping the gradient, AdamW and the average of the weights.
The other also leaves to it autograd's walk over the weights, and the operators of the loss. All
sides are the default's training step on one core, timed in turns; tables are as small and narrow as
many are.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from measure import figure, in_turns, show
from model_step import cycle_batches
from sides import make_trainer, random_table
from torch import Tensor, nn
from torch.nn.functional import huber_loss

from tabnsm.functional.grid_loss import Bounds
from tabnsm.kernels import AdamWKernel
from tabnsm.nn.compiled import CompiledPass
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.descent import Descent
from tabnsm.training.loop import Trainer
from tabnsm.training.objective import Objective

# Features and rows of a batch: tables of 1,000 to 8,000 rows have batches of 32 to 256.
SHAPES = ((8, 32), (8, 64), (32, 64), (32, 256), (115, 256), (400, 256))


def run(*, shapes: tuple[tuple[int, int], ...] = SHAPES, seconds: float = 4.0) -> dict[str, Any]:
    """Milliseconds of a step of each side, and the kernels' over the others'."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [step_times(n_features, batch, seconds) for n_features, batch in shapes]
    finally:
        torch.set_num_threads(n_threads)
    figures = [
        figure(
            f"of the step with torch's {side}, D = {row['n_features']}, batch {row['batch']}",
            row["kernels_ms"] / row[f"{side}_ms"],
            "x",
            at_most=1.0,
        )
        for row in rows
        for side in ("update", "operators")
    ]
    return {"settings": {"seconds": seconds}, "rows": rows, "figures": figures, "missing": []}


def step_times(n_features: int, batch: int, seconds: float) -> dict[str, Any]:
    """The steps at one width, each of a trainer and a state of its own."""
    table = random_table(4 * batch, n_features)
    batches = cycle_batches(table.n_rows, batch)
    runs = {}
    for side in ("kernels", "update", "operators"):
        trainer, state = make_trainer(table, batch_size=batch)
        if side != "kernels":
            state.optimizer.__class__ = UpdateByTorch
        if side == "operators":
            trainer.__class__ = StepByAutograd
            trainer.objective = LossByTorch(trainer.objective.config)
        runs[f"{side}_ms"] = make_step(trainer, copy.deepcopy(state), batches)
    for step in runs.values():
        step(), step()
    times = {name: 1e3 * value for name, value in in_turns(runs, seconds=seconds).items()}
    return {"n_features": n_features, "batch": batch, **times}


def make_step(trainer: Trainer, state: Any, batches: Any) -> Any:
    return lambda: trainer.train_step(state, next(batches))


class UpdateByTorch(Descent):
    """The same update by the operators that serve where the kernel does not."""

    def _prepare(self, average: WeightAverage) -> AdamWKernel | None:
        return None


class StepByAutograd(Trainer):
    """The same gradients by autograd."""

    def _compiled_pass(self, model: nn.Module) -> CompiledPass | None:
        return None


class LossByTorch(Objective):
    """The same loss by torch's operators."""

    def _compiled_losses(self, prediction: Tensor, target: Tensor, bounds: Bounds | None) -> Tensor:
        share, delta = self.config.huber_weight, self.config.huber_delta
        huber = huber_loss(prediction, target, reduction="none", delta=delta)
        return share * huber + (1 - share) * self._grid_losses(prediction, target, bounds)


if __name__ == "__main__":
    show(run())
