"""Where the time of the default model's training step goes, by operation.

    python bench/speed/step_profile.py

From torch's profiler: time inside an operation without the operations that it calls. The compiled
kernels appear under the name of their autograd function.
"""

from __future__ import annotations

from typing import Any

import torch
from measure import figure, show
from model_step import cycle_batches
from sides import make_trainer, random_table
from torch.profiler import ProfilerActivity, profile

SHOWN = 15


def run(*, n_features: int = 400, batch: int = 256, steps: int = 8) -> dict[str, Any]:
    """Share of each operation in the step's time."""
    table = random_table(4 * batch, n_features)
    trainer, state = make_trainer(table, batch_size=batch)
    batches = cycle_batches(table.n_rows, batch)
    trainer.train_step(state, next(batches))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(steps):
            trainer.train_step(state, next(batches))
    spent = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
    calls = {event.key: event.count for event in profiler.key_averages()}
    total = sum(spent.values())
    largest = sorted(spent, key=spent.__getitem__, reverse=True)[:SHOWN]
    rows = [
        {
            "operation": name,
            "share": spent[name] / total,
            "ms_per_step": spent[name] / steps / 1e3,
            "calls_per_step": calls[name] / steps,
        }
        for name in largest
    ]
    covered = figure(
        f"of the step's time in the {SHOWN} largest operations, D = {n_features}, batch {batch}",
        sum(row["share"] for row in rows),
        "%",
    )
    settings = {"n_features": n_features, "batch": batch, "torch": torch.__version__}
    return {"settings": settings, "rows": rows, "figures": [covered], "missing": []}


if __name__ == "__main__":
    show(run())
