"""GridLoss: its share of the default model's training step, and its cost against Huber's.

    python bench/speed/grid_loss.py

Forward and backward of each loss on one batch of standardised predictions.
"""

from __future__ import annotations

from typing import Any

import torch
from measure import Run, figure, in_turns, show
from model_step import cycle_batches
from sides import make_trainer, random_table

from tabnsm.training.objective import Objective, ObjectiveConfig

GOAL_FEATURES, GOAL_CELLS, GOAL = 400, 1000, 0.01


def run(
    *,
    n_features: int = 400,
    batch: int = 256,
    cells: tuple[int, ...] = (100, 1000, 10_000),
    seconds: float = 20.0,
) -> dict[str, Any]:
    """Milliseconds of the losses and of the step that they are part of."""
    table = random_table(4 * batch, n_features)
    trainer, state = make_trainer(
        table, batch_size=batch, objective=ObjectiveConfig(n_grid_cells=GOAL_CELLS)
    )
    batches = cycle_batches(table.n_rows, batch)
    runs: dict[str, Run] = {"huber": loss_run(ObjectiveConfig(huber_weight=1.0), batch)}
    for n_cells in cells:
        config = ObjectiveConfig(huber_weight=0.0, n_grid_cells=n_cells)
        runs[f"GridLoss, K = {n_cells}"] = loss_run(config, batch)
    runs["training step"] = lambda: trainer.train_step(state, next(batches))
    for run in runs.values():
        run()
    times = in_turns(runs, seconds=seconds)
    rows = [{"what": name, "ms": 1e3 * time} for name, time in times.items()]
    figures = []
    for n_cells in cells:
        spent = times[f"GridLoss, K = {n_cells}"]
        what = f"GridLoss, K = {n_cells:,}"
        figures += [
            figure(
                f"{what}, of the training step's time, D = {n_features}, batch {batch}",
                spent / times["training step"],
                "%",
                at_most=GOAL if (n_features, n_cells) == (GOAL_FEATURES, GOAL_CELLS) else None,
            ),
            figure(f"{what}, times the Huber loss", spent / times["huber"]),
        ]
    settings = {"n_features": n_features, "batch": batch}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": []}


def loss_run(config: ObjectiveConfig, batch: int) -> Run:
    """Forward and backward of one loss."""
    generator = torch.Generator().manual_seed(0)
    prediction = torch.randn(batch, 1, generator=generator).requires_grad_()
    target = torch.randn(batch, 1, generator=generator)
    objective = Objective(config)
    return lambda: torch.autograd.grad(objective.batch_loss(prediction, target), prediction)


if __name__ == "__main__":
    show(run())
