"""A change on several splits of some tables, where a single split would be chance."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from tabnsm_bench.store import load_results
from tabnsm_bench.suite.tables import TABLES

MARKS = re.compile(r"(<!-- splits: (\S+) over (\S+) -->\n).*?(<!-- end of splits -->)", re.DOTALL)
"""Around the table, with the folders of the runs with the change and without it."""
_HEAD = (
    "| table | half | splits | RMSE, before = 1 | MAE, before = 1 | RMSE, split by split |\n"
    "| :-- | :-- | --: | --: | --: | :-- |"
)


def splits_table(results: Path, label: str, before: str) -> str:
    """Markdown of the errors of one change over those before it.

    Parameters
    ----------
    results : Path
        Folder of the suite's results.
    label, before : str
        Folders of the runs with the change and without it.
    """
    changed, reference = (_runs(results / name) for name in (label, before))
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for dataset, *rest in sorted(changed.keys() & reference.keys()):
        for metric in ("rmse", "mae"):
            mine, other = (runs[dataset, *rest][metric] for runs in (changed, reference))
            ratios[dataset][metric].append(mine / other)
    rows = [
        f"| {name} | {TABLES[name].half} | {len(found['rmse'])} | {_mean(found['rmse']):.3f} "
        f"| {_mean(found['mae']):.3f} | {', '.join(f'{ratio:.3f}' for ratio in found['rmse'])} |"
        for name, found in ratios.items()
    ]
    return "\n".join([_HEAD, *rows])


def _runs(folder: Path) -> dict[tuple[Any, ...], dict[str, float]]:
    """Test scores by table, method and split."""
    keys = ("dataset", "method", "split", "seed")
    return {
        tuple(result["spec"][key] for key in keys): result["metrics"]["test"]
        for result in load_results(folder)
        if result["state"] == "done"
    }


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))
