"""Seconds of a fit alone, beside a busy process, and beside one of higher priority.

Run on an idle machine: python bench/speed/busy_neighbour.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings

import numpy as np
import torch

from tabnsm import TabNSMRegressor

BUSY = "while True: pass"
SHAPES = {"narrow": (4000, 8), "wide": (1500, 115)}


def fit_seconds(X: np.ndarray, y: np.ndarray) -> float:
    started = time.perf_counter()
    TabNSMRegressor(max_epochs=4, patience=4, n_ensemble=1, random_state=0).fit(X, y)
    return time.perf_counter() - started


def measure(X: np.ndarray, y: np.ndarray, niceness: int | None) -> float:
    """Median of three fits, beside a busy process of another niceness than ours, if any."""
    neighbour = None
    if niceness is not None:
        command = ["nice", "-n", str(niceness), sys.executable, "-c", BUSY]
        neighbour = subprocess.Popen(command)
    try:
        return float(np.median([fit_seconds(X, y) for _ in range(3)]))
    finally:
        if neighbour is not None:
            neighbour.kill()
            neighbour.wait()


def main() -> None:
    warnings.simplefilter("ignore")
    for name, (n_rows, n_columns) in SHAPES.items():
        X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
        y = X[:, 0] * X[:, 1] + X[:, 2]
        fit_seconds(X, y)
        for n_threads in (1, torch.get_num_threads()):
            torch.set_num_threads(n_threads)
            alone = measure(X, y, None)
            equal, outranked = measure(X, y, 0), measure(X, y, -15)
            facts = {
                "table": f"{name} {n_rows} x {n_columns}",
                "threads": n_threads,
                "alone": round(alone, 2),
                "equal_priority": round(equal / alone, 2),
                "outranked": round(outranked / alone, 2),
            }
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
