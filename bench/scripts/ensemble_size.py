"""How many networks of one fit pay off, and whether validation can tell.

    tabnsm bench suite run base --half choose --cpu-seconds 15   # writes the tables to suite-data
    python bench/scripts/ensemble_size.py fit --data-dir suite-data
    python bench/scripts/ensemble_size.py page

`fit` trains, per table of "choose", eight networks as the default does, and keeps the errors of the
mean of the first k. `page` prints what fewer networks would save and lose: a fixed number, or as
many as improve the mean's validation error by some share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

from tabnsm.training.network import initial_state, make_trainer
from tabnsm_bench.suite.networks import CPU, PARTS, SuiteRows, fit_all, run_study

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "ensemble_size.json"
N_NETWORKS, MAX_ROWS = 8, 3000
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
    fit = SuiteRows(data_dir, name, MAX_ROWS).prepare(n_ensemble=N_NETWORKS)
    sums = {part: np.zeros(len(fit.targets[part])) for part in PARTS}
    run: dict[str, Any] = {"epochs": [], "validation": [], "test": []}
    for number in range(N_NETWORKS):
        state = initial_state(fit.prepared, number, CPU)
        run["epochs"].append(len(make_trainer(fit.prepared, CPU).train(state)))
        for part, predicted in fit.predict(state).items():
            sums[part] += predicted
            error = fit.rmse(part, sums[part] / (number + 1))
            run[part].append(float(f"{error:.8g}"))
    return run


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
        mean = geometric_mean(ratios)
        lines.append(f"| {label} | {np.mean(epochs):.2f} | {mean:.4f} | {max(ratios):.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run_study(__doc__, partial(fit_all, fit_table, RESULTS), page)
