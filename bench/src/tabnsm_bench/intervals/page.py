"""The study's tables for text files: coverage, width and pinball loss of both methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm_bench.intervals.methods import METHODS
from tabnsm_bench.intervals.scores import LEVELS
from tabnsm_bench.intervals.study import read_results
from tabnsm_bench.intervals.tables import TABLES

NAMES = {"tabnsm": "TabNSM", "catboost-mapie": "CatBoost and MAPIE"}
SHOWN_LEVEL = 0.9
"""Of the coverage by tercile."""
_MARKED = re.compile(r"(<!-- intervals: (\w+) -->\n).*?(<!-- end of intervals -->)", re.DOTALL)


def fill_page(text: str, results: Path) -> str:
    """The text with all tables between their marks.

    Parameters
    ----------
    text : str
        With marks such as ``<!-- intervals: coverage -->`` and ``<!-- end of intervals -->``.
    results : Path
        Folder of the results.
    """
    if not _MARKED.search(text):
        raise InvalidDataError("The text must have <!-- intervals: NAME --> on a line.")
    runs = read_results(results)
    return _MARKED.sub(lambda m: f"{m[1]}\n{_MAKERS[m[2]](runs)}\n\n{m[3]}", text)


def coverage_table(runs: list[dict[str, Any]]) -> str:
    """Mean coverage over the splits, by table and level."""
    rows = []
    for name, method, found in _by_table(runs):
        shares = [_mean(found, "coverage", level) for level in LEVELS]
        rows.append([name, NAMES[method], str(len(found)), *(f"{x:.1%}" for x in shares)])
    return _markdown(["table", "method", "splits", *(f"{x:.0%}" for x in LEVELS)], rows)


def tercile_table(runs: list[dict[str, Any]]) -> str:
    """Mean coverage at one level, by tercile of width and of the prediction."""
    thirds = ("narrow", "middle", "wide", "low", "middle", "high")
    rows = []
    for name, method, found in _by_table(runs):
        shares = [
            _mean(found, key, SHOWN_LEVEL, k)
            for key in ("by_width", "by_prediction")
            for k in range(3)
        ]
        rows.append([name, NAMES[method], *(f"{x:.1%}" for x in shares)])
    return _markdown(["table", "method", *thirds], rows)


def ratio_table(runs: list[dict[str, Any]]) -> str:
    """Widths and pinball loss of TabNSM over the peer's, on the splits that both have."""
    ours, theirs = (
        {(run["table"], run["split"]): run for run in runs if run["method"] == method}
        for method in METHODS
    )
    rows = []
    for name in (*TABLES, "all"):
        keys = [key for key in ours if key in theirs and name in (key[0], "all")]
        if not keys:
            continue
        pairs = [(ours[key], theirs[key]) for key in keys]
        ratios = [
            [a["intervals"][k]["width"] / b["intervals"][k]["width"] for a, b in pairs]
            for k in range(len(LEVELS))
        ]
        ratios.append([a["pinball"] / b["pinball"] for a, b in pairs])
        means = [float(np.exp(np.mean(np.log(values)))) for values in ratios]
        rows.append([name, str(len(keys)), *(f"{x:.3f}" for x in means)])
    widths = [f"width at {level:.0%}" for level in LEVELS]
    return _markdown(["table", "splits", *widths, "pinball loss"], rows)


_MAKERS = {"coverage": coverage_table, "terciles": tercile_table, "ratios": ratio_table}


def _by_table(
    runs: list[dict[str, Any]],
) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """Runs of each table and method, then of each method on all tables."""
    found = []
    for name in (*TABLES, "all"):
        for method in METHODS:
            own = [r for r in runs if r["method"] == method and name in (r["table"], "all")]
            if own:
                found.append((name, method, own))
    return found


def _mean(runs: list[dict[str, Any]], key: str, level: float, place: int | None = None) -> float:
    values = [
        entry[key] if place is None else entry[key][place]
        for run in runs
        for entry in run["intervals"]
        if entry["level"] == level
    ]
    return float(np.mean(values))


def _markdown(heading: list[str], rows: list[list[str]]) -> str:
    marks = [":--" if not k or name == "method" else "--:" for k, name in enumerate(heading)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heading, marks, *rows])
