"""Cost of a RISE refresh as a share of the epochs that it serves.

    OMP_NUM_THREADS=2 python benchmarks/rise_refresh.py

The default model on random rows; the goal is at most 15 %.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from tabnsm.nn import TabNSM
from tabnsm.preprocessing.encoded import EncodedTable
from tabnsm.preprocessing.target import TargetScaler
from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.loop import Trainer, TrainingData, TrainingState, make_optimizer
from tabnsm.training.objective import Objective, ObjectiveConfig
from tabnsm.training.rise import RiseConfig, RiseSampler

TABLES = ((12, 8000), (400, 1024))


def main() -> None:
    print(f"{torch.get_num_threads()} threads")
    for n_features, n_rows in TABLES:
        generator = torch.Generator().manual_seed(0)
        table = EncodedTable(torch.randn(n_rows, n_features, generator=generator))
        target = table.dense[:, 0].double().numpy()
        few = EncodedTable(table.dense[:16])
        data = TrainingData(table, target, None, few, target[:16], None)
        config, rise = TrainingConfig(), RiseConfig()
        model = TabNSM(n_features, generator=generator)
        trainer = Trainer(
            config,
            Objective(ObjectiveConfig()),
            TargetScaler.fit(target),
            data,
            torch.device("cpu"),
        )
        state = TrainingState(
            model,
            make_optimizer(model, config),
            RiseSampler(n_rows, rise, generator),
            ValidationMonitor(config.patience, config.scheduler_patience),
            generator,
            {},
        )
        trainer.train_epoch(state)
        refreshes, epochs = [], []
        for _ in range(3):
            started = time.perf_counter()
            state.sampler.refresh(trainer.row_losses(model))
            refreshes.append(time.perf_counter() - started)
            started = time.perf_counter()
            for rows in torch.split(state.sampler.epoch_rows(), trainer.batch_size):
                trainer.train_step(state, rows)
            epochs.append(time.perf_counter() - started)
        refresh, epoch = float(np.min(refreshes)), float(np.min(epochs))
        share = refresh / (rise.refresh_every * epoch)
        print(
            f"D = {n_features:4d}: refresh {refresh:.2f} s, epoch {epoch:.2f} s "
            f"({n_rows / epoch:.0f} rows/s), {share:.1%} of {rise.refresh_every} epochs"
        )


if __name__ == "__main__":
    main()
