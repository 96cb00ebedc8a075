"""What shorter waits of early stopping would save, and what they would lose.

    tabnsm bench suite run base --half choose --cpu-seconds 15   # writes the tables to suite-data
    python bench/scripts/early_stopping.py fit --data-dir suite-data --tables rain_innsbruck,loans
    python bench/scripts/early_stopping.py page

`fit` trains four networks per table with the default's waits and keeps the validation score of each
epoch. A network that waits less has the same scores, and ends earlier: `page` replays that, and
prints the epochs that are left and the best validation score, both over the default's.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tabnsm.atomic import atomic_write
from tabnsm.training.early_stopping import epochs_to_wait

RESULTS = Path(__file__).resolve().parents[1] / "results" / "studies" / "early_stopping.json"
N_NETWORKS, SECONDS = 4, 150.0
Rule = Callable[[int], int]  # epochs to wait after a best epoch


def clamped(share: float, fewest: int) -> Rule:
    return lambda best: min(max(int(share * best), fewest), 16)


# Name of a rule, the rule, and whether it holds for the first network, too.
RULES: dict[str, tuple[Rule, bool]] = {
    "half of the epochs, at least 3": (clamped(0.5, 3), True),
    "two fifths, at least 3": (clamped(0.4, 3), True),
    "a third, at least 3; later networks only": (clamped(1 / 3, 3), False),
    "half of the default's wait, at least 3; later networks only": (
        lambda best: max(epochs_to_wait("auto", best) // 2, 3),
        False,
    ),
    "the default's wait over 2.5, at least 2; later networks only": (
        lambda best: max(int(epochs_to_wait("auto", best) / 2.5), 2),
        False,
    ),
}


def fit(data_dir: Path, tables: Sequence[str], results: Path = RESULTS) -> None:
    """Train on four fifths of each table; tables that are done are left out."""
    from tabnsm import TabNSMRegressor

    found = json.loads(results.read_text()) if results.exists() else {}
    for name in tables:
        if name in found:
            continue
        target = json.loads((data_dir / f"{name}.json").read_text())["target"]
        rows = pd.read_parquet(data_dir / f"{name}.parquet").sample(frac=0.8, random_state=42)
        model = TabNSMRegressor(random_state=0, n_ensemble=N_NETWORKS, n_jobs=1, time_limit=SECONDS)
        model.fit(rows.drop(columns=target), rows[target])
        found[name] = [[float(f"{epoch.score:.6g}") for epoch in h] for h in model.histories_]
        atomic_write(results, (json.dumps(found) + "\n").encode())
        print(name, [len(scores) for scores in found[name]], flush=True)


def replay(scores: Sequence[float], rule: Rule) -> tuple[int, float]:
    """Epochs until a network would have ended, and its best score by then."""
    best, best_epoch = math.inf, 0
    for epoch, score in enumerate(scores, start=1):
        if score < best:
            best, best_epoch = score, epoch
        elif epoch - best_epoch >= rule(best_epoch):
            return epoch, best
    return len(scores), best


def page(results: Path = RESULTS) -> str:
    """The table of bench/docs/suite.md from the results."""
    tables = json.loads(results.read_text())
    lines = [
        "| wait | epochs, default = 1 | best validation score, default = 1 | worst table |",
        "| :-- | --: | --: | --: |",
    ]
    for name, (rule, of_first) in RULES.items():
        shares, losses = [], []
        for networks in tables.values():
            kept = [] if of_first else [(len(networks[0]), min(networks[0]))]
            kept += [replay(scores, rule) for scores in networks[len(kept) :]]
            shares.append(sum(n for n, _ in kept) / sum(map(len, networks)))
            ratios = [best / min(s) for (_, best), s in zip(kept, networks, strict=True)]
            losses.append(float(np.exp(np.mean(np.log(ratios)))))
        mean = float(np.exp(np.mean(np.log(losses))))
        lines.append(f"| {name} | {np.mean(shares):.3f} | {mean:.4f} | {max(losses):.3f} |")
    return "\n".join(lines)


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("--data-dir", type=Path, default=Path("suite-data"))
    fitting.add_argument("--tables", required=True)
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "fit":
        fit(options.data_dir, options.tables.split(","))
    else:
        print(page())


if __name__ == "__main__":
    main()
