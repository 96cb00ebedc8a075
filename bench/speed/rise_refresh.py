"""Cost of a RISE refresh as a share of the epochs that it serves.

    python bench/speed/rise_refresh.py

The default model on random rows: a refresh predicts all training rows and sorts their losses.
"""

from __future__ import annotations

from typing import Any

import torch
from measure import figure, in_turns, show
from sides import make_trainer, random_table

from tabnsm.training.config import TrainingConfig

GOAL = 0.15


def run(
    *, tables: tuple[tuple[int, int], ...] = ((12, 8000), (400, 1024)), seconds: float = 10.0
) -> dict[str, Any]:
    """Seconds of a refresh and of an epoch on tables of (features, rows)."""
    rows, figures = [], []
    for n_features, n_rows in tables:
        batch_size = TrainingConfig().resolved_batch_size(n_rows)
        trainer, state = make_trainer(random_table(n_rows, n_features), batch_size=batch_size)

        def refresh(trainer=trainer, state=state) -> None:
            state.sampler.refresh(trainer.row_losses(state.model))

        def epoch(trainer=trainer, state=state) -> None:
            for index in torch.split(state.sampler.epoch_rows(), trainer.batch_size):
                trainer.train_step(state, index)

        trainer.train_step(state, torch.arange(2))
        times = in_turns({"refresh": refresh, "epoch": epoch}, seconds=seconds)
        every = state.sampler.config.refresh_every
        rows.append(
            {
                "n_features": n_features,
                "n_rows": n_rows,
                "refresh_s": times["refresh"],
                "epoch_s": times["epoch"],
                "refresh_every": every,
            }
        )
        figures.append(
            figure(
                f"RISE refresh, of the epochs that it serves, D = {n_features}, "
                f"N = {n_rows:,}, every {every} epochs",
                times["refresh"] / (every * times["epoch"]),
                "%",
                at_most=GOAL,
            )
        )
    return {"settings": {}, "rows": rows, "figures": figures, "missing": []}


if __name__ == "__main__":
    show(run())
