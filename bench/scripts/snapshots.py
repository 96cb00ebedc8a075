"""Whether further networks of one fit may go on from the first, by cycles of the learning rate.

    tabnsm bench suite run base --half choose --cpu-seconds 15   # writes the tables to suite-data
    python bench/scripts/snapshots.py fit --data-dir suite-data
    python bench/scripts/snapshots.py page

`fit` trains, per table of "choose", four networks as the default does, each from random weights.
Then it goes on from the best weights of the first in three cycles of a third of its epochs each:
the learning rate is constant for half of a cycle and then falls to zero, and the last averaged
weights are a snapshot. Test errors are of means of predictions; `page` prints them over that of
the first network.
"""

from __future__ import annotations

import copy
import json
import math
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from tabnsm.training.averaging import WeightAverage
from tabnsm.training.descent import make_optimizer
from tabnsm.training.loop import Trainer, TrainingState
from tabnsm.training.network import initial_state, make_trainer
from tabnsm_bench.suite.networks import CPU, PARTS, SuiteRows, fit_all, run_study

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "snapshots.json"
N_NETWORKS, N_CYCLES, MAX_ROWS = 4, 3, 3000
Networks = list[int]


def of_networks(count: int) -> Networks:
    return list(range(count))


def of_snapshots(run: dict[str, Any], only_kept: bool = False) -> Networks:
    return [N_NETWORKS + k for k in (run["kept"] if only_kept else range(N_CYCLES))]


def fit_table(data_dir: Path, name: str) -> dict[str, Any]:
    """Epochs, and errors of every mean that `page` compares, on one table."""
    fit = SuiteRows(data_dir, name, MAX_ROWS).prepare(n_ensemble=N_NETWORKS)
    prepared = fit.prepared
    predicted: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}

    def add(state: TrainingState) -> None:
        for part, values in fit.predict(state).items():
            predicted[part].append(values)

    epochs = []
    for number in range(N_NETWORKS):
        state = initial_state(prepared, number, CPU)
        epochs.append(len(make_trainer(prepared, CPU).train(state)))
        add(state)
        if number == 0:
            first, best_epoch = state, state.history.best_epoch
    n_epochs = max(math.ceil(best_epoch / 3), 3)
    trainer = make_trainer(prepared, CPU)
    for _ in range(N_CYCLES):
        _cycle(trainer, first, n_epochs)
        add(first)

    def error(part: str, members: Networks) -> float:
        return fit.rmse(part, np.mean([predicted[part][k] for k in members], axis=0))

    members = [0]
    for k in range(N_NETWORKS, N_NETWORKS + N_CYCLES):
        if error("validation", [*members, k]) < error("validation", members):
            members.append(k)
    run: dict[str, Any] = {"kept": [k - N_NETWORKS for k in members[1:]], "epochs": epochs}
    run |= {"best_epoch": best_epoch, "cycle_epochs": N_CYCLES * n_epochs}
    return run | {"rmse": {label: error("test", which(run)) for label, (which, _) in ROWS.items()}}


def _cycle(trainer: Trainer, state: TrainingState, n_epochs: int) -> None:
    """Some epochs with a constant learning rate that then falls to zero; keeps the last weights."""
    state.optimizer = make_optimizer(state.model, trainer.config)
    state.average = WeightAverage(state.model, trainer.config.ema_decay)
    for epoch in range(n_epochs):
        state.monitor.learning_rate_factor = min(1.0, 2 * (1 - (epoch + 0.5) / n_epochs))
        trainer.train_epoch(state)
    with state.average.applied():
        weights = copy.deepcopy(state.model.state_dict())
    state.model.load_state_dict(weights)
    state.model.eval()


# Name, the networks and snapshots that predict, and the epochs that they took.
ROWS: dict[str, tuple[Any, Any]] = {
    "1 network": (lambda _: of_networks(1), lambda run: run["epochs"][0]),
    "2 networks": (lambda _: of_networks(2), lambda run: sum(run["epochs"][:2])),
    "1 network and 3 snapshots": (
        lambda run: of_networks(1) + of_snapshots(run),
        lambda run: run["epochs"][0] + run["cycle_epochs"],
    ),
    "the same, those that lower the validation error": (
        lambda run: of_networks(1) + of_snapshots(run, only_kept=True),
        lambda run: run["epochs"][0] + run["cycle_epochs"],
    ),
    "2 networks and 3 snapshots of the first": (
        lambda run: of_networks(2) + of_snapshots(run),
        lambda run: sum(run["epochs"][:2]) + run["cycle_epochs"],
    ),
    "3 networks": (lambda _: of_networks(3), lambda run: sum(run["epochs"][:3])),
    "4 networks": (lambda _: of_networks(4), lambda run: sum(run["epochs"])),
}


def page(results: Path = RESULTS) -> str:
    """The table of bench/docs/suite.md from the results."""
    runs = json.loads(results.read_text()).values()
    lines = [
        "| what | epochs, 1 network = 1 | RMSE, 1 network = 1 | lower RMSE on |",
        "| :-- | --: | --: | --: |",
    ]
    for label, (_, epochs_of) in ROWS.items():
        ratios = [run["rmse"][label] / run["rmse"]["1 network"] for run in runs]
        epochs = [epochs_of(run) / run["epochs"][0] for run in runs]
        won = sum(ratio < 1 for ratio in ratios)
        means = f"{geometric_mean(epochs):.2f} | {geometric_mean(ratios):.4f}"
        lines.append(f"| {label} | {means} | {won} of {len(ratios)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_study(__doc__, partial(fit_all, fit_table, RESULTS), page)
