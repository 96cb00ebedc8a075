"""Accuracy with text columns joined and separate on real tables, one JSON file per run.

    OMP_NUM_THREADS=1 python bench/speed/text_columns.py --data-dir ../shared/data

"joined" embeds one string per row; "separate" embeds the distinct values of each text column and
keeps their principal directions. All runs of a table have the same rows and the same split
(72/8/20, random_state 42); only `text_columns` and the seed differ. Few epochs and a sample of the
rows, so that a run takes a minute or two on one core. Validation rows choose the epoch. A file
that is already there is kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ablation import fit_and_score, format_scores, read_table, split_rows
from page import BENCH

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write

N_ROWS = {"electric_vehicle_population": 3000, "womens_clothing_reviews": 1500}
TEXT_COLUMNS = ("joined", "separate")


def run(
    X: pd.DataFrame, y: np.ndarray, *, text_columns: str, seed: int, **options: Any
) -> dict[str, Any]:
    """Fit with all strings as text, their columns joined or separate, and linear tokens."""
    model = TabNSMRegressor(
        text_columns=text_columns,
        repeated_strings="text",
        n_text_features=0,
        n_bins=0,
        random_state=seed,
        **options,
    )
    scores = fit_and_score(model, split_rows(X, y))
    n_text_features = sum("text_" in name for name in model.encoder_.feature_names)
    own = {"seed": seed, "text_columns": text_columns, "n_text_features": n_text_features}
    return own | scores


def summarize(results: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds of the RMSE, one line per kind of text columns."""
    lines = []
    for text_columns in TEXT_COLUMNS:
        runs = [result for result in results if result["text_columns"] == text_columns]
        lines.append(f"  {text_columns:8} (D = {runs[0]['n_features']}): {format_scores(runs)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=BENCH / "results/studies/text_columns")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=N_ROWS, default=list(N_ROWS))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    tables = {name: read_table(arguments.data_dir, name, N_ROWS[name]) for name in arguments.tables}
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for seed in range(arguments.seeds):
        for name, (X, y) in tables.items():
            for text_columns in TEXT_COLUMNS:
                path = arguments.out / f"{name}-{text_columns}-{seed}.json"
                if not path.exists():
                    result = run(
                        X, y, text_columns=text_columns, seed=seed, max_epochs=arguments.epochs
                    )
                    result = {"dataset": name, **result}
                    atomic_write(path, (json.dumps(result, indent=1) + "\n").encode())
                    print(f"{path.name}: {result['fit_seconds']} s", flush=True)
                results[name].append(json.loads(path.read_text()))
    for name, runs in results.items():
        print(f"{name}\n{summarize(runs)}", flush=True)


if __name__ == "__main__":
    main()
