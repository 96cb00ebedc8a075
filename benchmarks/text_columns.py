"""Accuracy with text columns joined and apart on real tables, one JSON file per run.

    OMP_NUM_THREADS=1 python benchmarks/text_columns.py --data-dir ../shared/data

"joined" embeds one string per row; "separate" embeds the distinct values of each text column and
keeps their principal directions. All runs of a table have the same rows and the same split
(72/8/20, random_state 42); only `text_columns` and the seed differ. Few epochs and a sample of the
rows, so that a run takes a minute or two on one core. Validation rows choose the epoch. A file
that is already there is kept.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.metrics import regression_metrics

N_ROWS = {"electric_vehicle_population": 3000, "womens_clothing_reviews": 1500}
TEXT_COLUMNS = ("joined", "separate")
SPLIT = 42


def read_table(data_dir: Path, name: str, n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Some rows of a table, without the columns that its description calls leaks."""
    about = json.loads((data_dir / f"{name}.json").read_text())
    frame = pd.read_parquet(data_dir / about["file"]).sample(n_rows, random_state=SPLIT)
    X = frame.drop(columns=[about["target"], *about["drop"]]).reset_index(drop=True)
    return X, frame[about["target"]].to_numpy(dtype=np.float64)


def run(
    X: pd.DataFrame, y: np.ndarray, *, text_columns: str, seed: int, **options: Any
) -> dict[str, Any]:
    """Fit with all strings as text, their columns joined or apart, and straight tokens."""
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=SPLIT)
    X_train, X_val, y_train, y_val = train_test_split(
        X_rest, y_rest, test_size=0.1, random_state=SPLIT
    )
    model = TabNSMRegressor(
        text_columns=text_columns,
        repeated_strings="text",
        n_pieces=0,
        random_state=seed,
        **options,
    )
    started = time.perf_counter()
    model.fit(X_train, y_train, X_val=X_val, y_val=y_val)
    return {
        "seed": seed,
        "text_columns": text_columns,
        "n_features": model.encoder_.n_features,
        "n_text_features": sum("text_" in name for name in model.encoder_.feature_names),
        "n_rows": {"train": len(X_train), "validation": len(X_val), "test": len(X_test)},
        "validation": regression_metrics(y_val, model.predict(X_val)),
        "test": regression_metrics(y_test, model.predict(X_test)),
        "epochs": len(model.history_),
        "best_epoch": model.history_.best_epoch,
        "fit_seconds": round(time.perf_counter() - started, 1),
        "config": model.options_.to_dict(),
        "versions": {name: version(name) for name in ("tabnsm", "torch", "numpy", "scikit-learn")}
        | {"python": platform.python_version(), "threads": torch.get_num_threads()},
    }


def summarize(results: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds of the RMSE, one line per kind of text columns."""
    lines = []
    for text_columns in TEXT_COLUMNS:
        runs = [result for result in results if result["text_columns"] == text_columns]
        scores = []
        for part in ("validation", "test"):
            values = [result[part]["rmse"] for result in runs]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            scores.append(f"{part} RMSE {statistics.mean(values):8.4f} +- {spread:.4f}")
        lines.append(
            f"  {text_columns:8} (D = {runs[0]['n_features']}): {', '.join(scores)} "
            f"({len(runs)} seeds)"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("results/studies/text_columns"))
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
