"""How many networks of one fit pay off, and whether validation can tell.

    tabnsm bench suite run base --half choose --cpu-seconds 15   # writes the tables to suite-data
    python bench/scripts/ensemble_size.py fit --data-dir suite-data
    python bench/scripts/ensemble_size.py page

`fit` trains, per table of "choose", eight networks as the default does, and keeps the errors of the
mean of the first k. `page` prints what fewer networks would save and lose: a fixed number, or as
many as improve the mean's validation error by some share.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from tabnsm import TabNSMRegressor
from tabnsm.atomic import atomic_write
from tabnsm.options import resolve_options
from tabnsm.prediction import predict_rows
from tabnsm.tables import Table
from tabnsm.training.network import initial_state, make_trainer
from tabnsm.training.prepare import FitRows, Validation
from tabnsm_bench.splits import paper_split
from tabnsm_bench.suite.tables import CHOOSE, names_of

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "ensemble_size.json"
N_NETWORKS, MAX_ROWS = 8, 3000
CPU = torch.device("cpu")
Rule = Callable[[Sequence[float]], int]  # from validation errors of the means to networks trained


def fixed(count: int) -> Rule:
    return lambda _: count


def while_gaining(share: float, fewest: int = 3) -> Rule:
    """Networks until one improves the mean by less than a share; that one is trained, too."""

    def count(errors: Sequence[float]) -> int:
        for n in range(fewest, len(errors)):
            if errors[n - 1] > (1 - share) * errors[n - 2]:
                return n
        return len(errors)

    return count


RULES: dict[str, Rule] = {
    "1 network": fixed(1),
    **{f"{count} networks": fixed(count) for count in (2, 3, 4, 5, 6)},
    **{
        f"at least 3, while one gains {share:.1%}": while_gaining(share)
        for share in (0.005, 0.002, 0.001)
    },
}


def fit_table(data_dir: Path, name: str) -> dict[str, Any]:
    """Epochs of each network, and validation and test error of the mean of the first k."""
    about = json.loads((data_dir / f"{name}.json").read_text())
    rows = pd.read_parquet(data_dir / f"{name}.parquet").drop(columns=about["drop"])
    if len(rows) > MAX_ROWS:
        rows = rows.sample(MAX_ROWS, random_state=42).sort_index()
    X, y = rows.drop(columns=about["target"]), rows[about["target"]]
    split = paper_split(len(rows))
    # Without a linear residual, so that test rows need no targets of their own kind.
    model = TabNSMRegressor(random_state=0, n_ensemble=N_NETWORKS, linear_residual=False)
    validation = Validation(X_val=X.iloc[split.validation], y_val=y.iloc[split.validation])
    collected = FitRows.collect(X.iloc[split.train], y.iloc[split.train], None, validation, 0)
    prepared = collected.prepare(resolve_options(model.get_params()))
    test = prepared.encoder.transform(Table.from_native(X.iloc[split.test]))
    tables = prepared.data.validation, test
    targets = prepared.data.validation_target[:, 0], y.iloc[split.test].to_numpy(float)
    sums = [np.zeros(table.n_rows) for table in tables]
    run: dict[str, Any] = {"epochs": [], "validation": [], "test": []}
    for number in range(N_NETWORKS):
        state = initial_state(prepared, number, CPU)
        run["epochs"].append(len(make_trainer(prepared, CPU).train(state)))
        parts = zip(("validation", "test"), sums, tables, targets, strict=True)
        for part, total, table, target in parts:
            standard = predict_rows(state.model, table, CPU)
            total += prepared.target.unstandardize(standard)[:, 0]
            error = np.sqrt(np.mean((total / (number + 1) - target) ** 2))
            run[part].append(float(f"{error:.8g}"))
    return run


def fit(data_dir: Path, results: Path = RESULTS) -> None:
    """Run the tables that are not done."""
    found = json.loads(results.read_text()) if results.exists() else {}
    for name in names_of(CHOOSE):
        if name not in found:
            found[name] = fit_table(data_dir, name)
            atomic_write(results, (json.dumps(found) + "\n").encode())
            print(name, json.dumps(found[name]), flush=True)


def page(results: Path = RESULTS) -> str:
    """The table of bench/docs/suite.md from the results."""
    runs = json.loads(results.read_text()).values()
    lines = [
        "| networks | epochs, 8 networks = 1 | RMSE, 8 networks = 1 | worst table |",
        "| :-- | --: | --: | --: |",
    ]
    for label, rule in RULES.items():
        counts = [rule(run["validation"]) for run in runs]
        pairs = list(zip(runs, counts, strict=True))
        epochs = [sum(run["epochs"][:n]) / sum(run["epochs"]) for run, n in pairs]
        ratios = [run["test"][n - 1] / run["test"][-1] for run, n in pairs]
        mean = float(np.exp(np.mean(np.log(ratios))))
        lines.append(f"| {label} | {np.mean(epochs):.2f} | {mean:.4f} | {max(ratios):.3f} |")
    return "\n".join(lines)


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
