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

import argparse
import copy
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from tabnsm import TabNSMRegressor
from tabnsm.atomic import atomic_write
from tabnsm.columns import EncodedTable
from tabnsm.options import resolve_options
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.descent import make_optimizer
from tabnsm.training.loop import Trainer, TrainingState
from tabnsm.training.network import initial_state, make_trainer
from tabnsm.training.prepare import FitRows, PreparedFit, Validation
from tabnsm_bench.splits import paper_split
from tabnsm_bench.suite.tables import CHOOSE, names_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "snapshots.json"
N_NETWORKS, N_CYCLES, MAX_ROWS = 4, 3, 3000
CPU = torch.device("cpu")
Networks = list[int]


def of_networks(count: int) -> Networks:
    return list(range(count))


def of_snapshots(run: dict[str, Any], only_kept: bool = False) -> Networks:
    return [N_NETWORKS + k for k in (run["kept"] if only_kept else range(N_CYCLES))]


def fit_table(data_dir: Path, name: str) -> dict[str, Any]:
    """Epochs, and errors of every mean that `page` compares, on one table."""
    about = json.loads((data_dir / f"{name}.json").read_text())
    rows = pd.read_parquet(data_dir / f"{name}.parquet").drop(columns=about["drop"])
    if len(rows) > MAX_ROWS:
        rows = rows.sample(MAX_ROWS, random_state=42).sort_index()
    X, y = rows.drop(columns=about["target"]), rows[about["target"]]
    split = paper_split(len(rows))
    train, held_out, test = split.train, split.validation, split.test
    # Without a linear residual, so that test rows need no targets of their own kind.
    model = TabNSMRegressor(random_state=0, n_ensemble=N_NETWORKS, linear_residual=False)
    validation = Validation(X_val=X.iloc[held_out], y_val=y.iloc[held_out])
    collected = FitRows.collect(X.iloc[train], y.iloc[train], None, validation, 0)
    prepared = collected.prepare(resolve_options(model.get_params()))
    tables = prepared.data.validation, prepared.encoder.transform(Table.from_native(X.iloc[test]))
    targets = prepared.data.validation_target[:, 0], y.iloc[test].to_numpy(float)

    predicted: list[list[np.ndarray]] = [[], []]

    def add(state: TrainingState) -> None:
        for known, table in zip(predicted, tables, strict=True):
            known.append(_predictions(prepared, state, table))

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

    def error(part: int, members: Networks) -> float:
        mean = np.mean([predicted[part][k] for k in members], axis=0)
        return float(np.sqrt(np.mean((mean - targets[part]) ** 2)))

    members = [0]
    for k in range(N_NETWORKS, N_NETWORKS + N_CYCLES):
        if error(0, [*members, k]) < error(0, members):
            members.append(k)
    run: dict[str, Any] = {"kept": [k - N_NETWORKS for k in members[1:]], "epochs": epochs}
    run |= {"best_epoch": best_epoch, "cycle_epochs": N_CYCLES * n_epochs}
    return run | {"rmse": {label: error(1, which(run)) for label, (which, _) in ROWS.items()}}


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


def _predictions(prepared: PreparedFit, state: TrainingState, table: EncodedTable) -> np.ndarray:
    return prepared.target.unstandardize(predict_rows(state.model, table, CPU))[:, 0]


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


def fit(data_dir: Path, results: Path = RESULTS) -> None:
    """Run the tables that are not done."""
    found = json.loads(results.read_text()) if results.exists() else {}
    for name in names_of(CHOOSE):
        if name not in found:
            found[name] = fit_table(data_dir, name)
            atomic_write(results, (json.dumps(found, indent=1) + "\n").encode())
            print(name, json.dumps(found[name]), flush=True)


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


def geometric_mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("--data-dir", type=Path, default=Path("suite-data"))
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "fit":
        fit(options.data_dir)
    else:
        print(page())


if __name__ == "__main__":
    main()
