"""How much of each row's true foreground the attributions find, one JSON file per run.

    OMP_NUM_THREADS=2 python bench/speed/foreground_recovery.py

The tables are made so that the informative columns differ from row to row and are known. In
"regimes" a category says which of four groups of five columns makes the target; the groups are
neighbours ("regimes-blocks") or spread over the table ("regimes-spread"). In "signs" the sign of
one number decides between two groups. All other columns are noise. Precision is the share of true
columns among the row's k strongest, with k the size of its foreground (so that it equals the
recall at k); a ranking that is the same for all rows reaches at most 1 / n_groups. A file that is
already there is kept.
"""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from page import BENCH

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write

GROUP = 5
TABLES = {
    "regimes-blocks-40": ("regimes", 4, 40, False),
    "regimes-spread-40": ("regimes", 4, 40, True),
    "regimes-spread-100": ("regimes", 4, 100, True),
    "signs-40": ("signs", 2, 40, True),
}


def make_table(
    kind: str, n_groups: int, n_columns: int, spread: bool, n_rows: int, seed: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Columns, target, and which columns make the target of each row."""
    layout = np.random.default_rng(7)
    places = layout.permutation(n_columns) if spread else np.arange(n_columns)
    groups = places[: n_groups * GROUP].reshape(n_groups, GROUP)
    weights = layout.uniform(0.5, 1.5, groups.shape) * layout.choice([-1, 1], groups.shape)
    rng = np.random.default_rng([11, seed])
    x = rng.normal(size=(n_rows, n_columns))
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(n_columns)])
    if kind == "regimes":
        group = rng.integers(n_groups, size=n_rows)
        frame["regime"] = np.array(["north", "east", "south", "west"])[group]
    else:
        switch = rng.normal(size=n_rows)
        group = (switch > 0).astype(int)
        frame["switch"] = switch
    y = np.take_along_axis(x, groups[group], axis=1) * weights[group]
    truth = np.zeros((n_rows, n_columns), dtype=bool)
    np.put_along_axis(truth, groups[group], True, axis=1)
    return frame, y.sum(axis=1) + 0.1 * rng.normal(size=n_rows), truth


def found(scores: np.ndarray, truth: np.ndarray, k: int) -> float:
    """Mean share of the true columns among the k highest scores of each row."""
    top = np.argsort(-scores, axis=1)[:, :k]
    return float((np.take_along_axis(truth, top, axis=1).sum(axis=1) / GROUP).mean())


def run(name: str, attention: str, seed: int, epochs: int) -> dict[str, object]:
    kind, n_groups, n_columns, spread = TABLES[name]
    X, y, _ = make_table(kind, n_groups, n_columns, spread, 4000, seed=0)
    X_test, y_test, truth = make_table(kind, n_groups, n_columns, spread, 1000, seed=1)
    model = TabNSMRegressor(attention=attention, random_state=seed, max_epochs=epochs).fit(X, y)
    recovery: dict[str, dict[str, float]] = {}
    for baseline in ("zero", "average"):
        explanation = model.explain(X_test, baseline=baseline)
        at = [explanation.columns.index(f"x{k}") for k in range(n_columns)]
        scores = explanation.attributions[:, at]
        recovery[baseline] = {
            "precision_at_k": found(scores, truth, GROUP),
            "recall_at_2k": found(scores, truth, 2 * GROUP),
        }
    foreground = explanation.foreground
    blocks = None
    if foreground is not None:
        chosen = foreground[:, at]
        blocks = {
            "selected_true": float(chosen[truth].mean()),
            "selected_other": float(chosen[~truth].mean()),
            "precision_at_k": found(chosen, truth, GROUP),
        }
    return {
        "study": "foreground_recovery",
        "table": name,
        "attention": attention,
        "seed": seed,
        "rows": {"train": len(X), "test": len(X_test)},
        "test_r2": model.score(X_test, y_test),
        "attributions": recovery,
        "selected_blocks": blocks,
        "reference": {
            "k": GROUP,
            "precision_by_chance": GROUP / n_columns,
            "precision_of_the_best_fixed_ranking": 1 / n_groups,
        },
        "epochs": len(model.history_),
        "options": model.options_.to_dict(),
        "versions": {name: version(name) for name in ("tabnsm", "torch", "numpy")}
        | {"python": platform.python_version(), "threads": torch.get_num_threads()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--attention", nargs="*", default=["sparse", "full"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, default=BENCH / "results/studies")
    arguments = parser.parse_args()
    folder = arguments.out / "foreground_recovery"
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.tables:
        for attention in arguments.attention:
            path = folder / f"{name}-{attention}-{arguments.seed}.json"
            if not path.exists():
                result = run(name, attention, arguments.seed, arguments.epochs)
                atomic_write(path, (json.dumps(result, indent=1) + "\n").encode())
            result = json.loads(path.read_text())
            zero, average = (result["attributions"][b] for b in ("zero", "average"))
            print(
                f"{name:20} {attention:7} R2 {result['test_r2']:.3f}  precision@{GROUP} "
                f"{zero['precision_at_k']:.3f} (average baseline "
                f"{average['precision_at_k']:.3f}; best fixed ranking "
                f"{result['reference']['precision_of_the_best_fixed_ranking']:.3f})  "
                f"recall@{2 * GROUP} {zero['recall_at_2k']:.3f}"
            )


if __name__ == "__main__":
    main()
