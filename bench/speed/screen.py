"""Options tried on the training rows of real tables, before any test row is used.

    OMP_NUM_THREADS=1 python bench/speed/screen.py cpu_small --data-dir ../shared/data \\
        --set n_ensemble=1 --set n_bins=64

The test rows of a split (20 %) are held out; of the others, three quarters are fitted, a tenth of
them to validate, and the last quarter scores. `--set` gives options of TabNSMRegressor, JSON or
strings. A screen is small and noisy: one seed, two splits, a part of the rows, 70 seconds a fit. It
shows what is worth a full run, no more. The record goes to TABLE.json in
bench/results/studies/screens, and one with the same options is replaced; those of prototypes,
whose code was not kept, describe what they were.
`--into bench/docs/accuracy-notebook.md` only writes all records into the page, between its marks.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from page import BENCH, put_between
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.earlier import rename_options
from tabnsm.metrics import regression_metrics
from tabnsm_bench.evidence import code_state

SPLITS = (42, 43)
MARKS = ("<!-- screens -->", "<!-- end of screens -->")
MAX_ROWS = 8000
# Fewer where rows are wide or slow to learn, so that a screen stays one.
N_ROWS = {
    "blog_feedback": 5000,
    "bike_sharing_hour": 5000,
    "california_housing": 4000,
    "cpu_act": 4000,
    "nyc_air_quality": 6000,
    "ujiindoorloc": 2500,
}


def training_rows(
    data_dir: Path, name: str, split: int, n_rows: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Some of the rows that are not test rows of `split`, without leaks."""
    about = json.loads((data_dir / f"{name}.json").read_text())
    frame = pd.read_parquet(data_dir / about["file"])
    frame = frame[np.isfinite(frame[about["target"]].astype(float))]
    frame, _ = train_test_split(frame, test_size=0.2, random_state=split)
    if len(frame) > n_rows:
        frame, _ = train_test_split(frame, train_size=n_rows, random_state=0)
    X = frame.drop(columns=[about["target"], *about["drop"]])
    return X, frame[about["target"]].to_numpy(dtype=np.float64)


def screen(data_dir: Path, name: str, *, n_rows: int, **options: Any) -> dict[str, Any]:
    """Fit on three quarters of the training rows of each split, score on the last quarter."""
    scores: list[dict[str, float]] = []
    started = time.perf_counter()
    for split in SPLITS:
        X, y = training_rows(data_dir, name, split, n_rows)
        X_fit, X_score, y_fit, y_score = train_test_split(X, y, test_size=0.25, random_state=split)
        model = TabNSMRegressor(**{"random_state": 0, "time_limit": 70.0} | options)
        model.fit(X_fit, y_fit)
        scores.append(regression_metrics(y_score, model.predict(X_score)))
    return {
        "options": options,
        "splits": list(SPLITS),
        "n_rows": n_rows,
        "n_features": model.encoder_.n_features,
        "rmse": [score["rmse"] for score in scores],
        "mae": [score["mae"] for score in scores],
        "seconds": round(time.perf_counter() - started, 1),
        "versions": {package: version(package) for package in ("tabnsm", "torch", "numpy")},
        "code": code_state(),
    }


def keep(path: Path, record: dict[str, Any]) -> None:
    """Add a record to a table's file, in the place of one with the same options."""
    records = json.loads(path.read_text()) if path.exists() else []
    records = [
        other
        for other in records
        if rename_options(other["options"]) != record["options"] or "prototype" in other
    ]
    atomic_write(path, (json.dumps([*records, record], indent=1) + "\n").encode())


def table(folder: Path) -> str:
    """All records as Markdown, the best of a table first, options by their names of today."""
    lines = ["| table | options | RMSE | on each split |", "| :-- | :-- | --: | --: |"]
    for path in sorted(folder.glob("*.json")):
        records = json.loads(path.read_text())
        for record in sorted(records, key=lambda record: float(np.mean(record["rmse"]))):
            options = [
                f"`{name}={value}`"
                for name, value in sorted(rename_options(record["options"]).items())
            ]
            options += [record["prototype"]] if "prototype" in record else []
            each = ", ".join(format_score(score) for score in record["rmse"])
            mean = format_score(float(np.mean(record["rmse"])))
            lines.append(f"| {path.stem} | {', '.join(options)} | {mean} | {each} |")
    return "\n".join(lines)


def format_score(score: float) -> str:
    """Four significant digits, and no decimals from a thousand on.

    >>> format_score(2.64603), format_score(19629.6)
    ('2.646', '19,630')
    """
    return f"{score:,.0f}" if score >= 1000 else f"{score:.4g}"


def fill(page: str, folder: Path) -> str:
    """The page with the table of all records between its marks."""
    return put_between(page, MARKS, table(folder))


def parsed(entry: str) -> tuple[str, Any]:
    """NAME=VALUE with the value as JSON, or as a string.

    >>> parsed("n_bins=64"), parsed("loss=mse")
    (('n_bins', 64), ('loss', 'mse'))
    """
    name, _, value = entry.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--data-dir", type=Path, default=Path("data"))
    parser.add_argument("--into", type=Path, metavar="PAGE")
    parser.add_argument("--out", type=Path, default=BENCH / "results/studies/screens")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.into is not None:
        page = fill(arguments.into.read_text(), arguments.out)
        atomic_write(arguments.into, page.encode())
    options = dict(parsed(entry) for entry in arguments.set)
    for name in arguments.tables:
        n_rows = N_ROWS.get(name, MAX_ROWS)
        record = screen(arguments.data_dir, name, n_rows=n_rows, **options)
        keep(arguments.out / f"{name}.json", record)
        print(f"{name:28} {options} RMSE {np.mean(record['rmse']):.6g}", flush=True)


if __name__ == "__main__":
    main()
