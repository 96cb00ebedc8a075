"""Test RMSE on the paper's CP table and split, one JSON file per seed under results/.

    python benchmarks/paper_split.py --data ../shared/data/cpu_small.parquet --preset paper

The split is 72/8/20 with random_state 42; validation rows choose the epoch, test rows choose
nothing. A file that is already there is kept: runs can be interrupted and continued.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.metrics import regression_metrics

TARGET = "usr"
SPLIT = 42


def run(data: Path, preset: str, seed: int) -> dict[str, object]:
    frame = pd.read_parquet(data)
    X, y = frame.drop(columns=TARGET), frame[TARGET]
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=SPLIT)
    X_train, X_val, y_train, y_val = train_test_split(
        X_rest, y_rest, test_size=0.1, random_state=SPLIT
    )
    started = time.perf_counter()
    model = TabNSMRegressor(preset=preset, random_state=seed)
    model.fit(X_train, y_train, X_val=X_val, y_val=y_val)
    fit_seconds = time.perf_counter() - started
    return {
        "method": f"tabnsm-{preset}",
        "dataset": data.stem,
        "seed": seed,
        "split": {"train": len(X_train), "validation": len(X_val), "test": len(X_test)}
        | {"random_state": SPLIT},
        "test": regression_metrics(y_test.to_numpy(), model.predict(X_test)),
        "validation_rmse": model.history_.best.validation_rmse,
        "epochs": len(model.history_),
        "best_epoch": model.history_.best_epoch,
        "stop_reason": model.history_.stop_reason,
        "fit_seconds": round(fit_seconds, 1),
        "config": model.options_.to_dict(),
        "versions": {name: version(name) for name in ("tabnsm", "torch", "numpy", "scikit-learn")}
        | {"python": platform.python_version(), "threads": torch.get_num_threads()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    scores = []
    for seed in range(arguments.seeds):
        path = arguments.out / f"tabnsm-{arguments.preset}" / arguments.data.stem / f"{seed}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            result = run(arguments.data, arguments.preset, seed)
            atomic_write(path, (json.dumps(result, indent=1) + "\n").encode())
        result = json.loads(path.read_text())
        scores.append(result["test"]["rmse"])
        print(
            f"seed {seed}: test RMSE {scores[-1]:.3f}, validation {result['validation_rmse']:.3f}, "
            f"{result['epochs']} epochs, {result['fit_seconds']} s"
        )
    print(f"mean of {len(scores)} seeds: {sum(scores) / len(scores):.3f}")


if __name__ == "__main__":
    main()
