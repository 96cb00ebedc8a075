"""The suite's table for text files: methods beside CatBoost, both halves."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tabnsm.errors import InvalidDataError
from tabnsm_bench.suite import by_split, departures
from tabnsm_bench.suite.figure_of_merit import REFERENCE, Summary, half_summaries, runs_by_table
from tabnsm_bench.suite.peers import HIST_GRADIENT_BOOSTING
from tabnsm_bench.suite.progress import ACCEPTED

MARKS = ("<!-- suite -->", "<!-- end of suite -->")
"""Around the table; `<!-- suite: confirm -->` is that half alone."""
PEERS = {
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    HIST_GRADIENT_BOOSTING: "HistGradientBoosting",
    "tabm": "TabM",
    "realmlp": "RealMLP",
}
_HEAD = (
    "| method | part | tables | RMSE, CatBoost = 1 | MAE, CatBoost = 1 | tables won "
    "| time to fit, CatBoost = 1 |\n| :-- | :-- | --: | --: | --: | --: | --: |"
)


def suite_table(results: Path, half: str | None = None) -> str:
    """Markdown of the newest accepted change of each preset, and of the peers.

    Parameters
    ----------
    results : Path
        As in `draw_progress`.
    half : str or None
        Show only this half.
    """
    accepted = json.loads((results / ACCEPTED).read_text())
    newest = {change.get("method", "tabnsm-default"): change["label"] for change in accepted}
    rows = [_HEAD]
    reference = runs_by_table(results / "peers", REFERENCE)
    for method, label in newest.items():
        name = f"TabNSM ({method.removeprefix('tabnsm-')})"
        rows += _lines(name, half_summaries(runs_by_table(results / label, method), reference))
    for method, name in PEERS.items():
        rows += _lines(name, half_summaries(runs_by_table(results / "peers", method), reference))
    return "\n".join(row for row in rows if row == _HEAD or half in (None, row.split(" | ")[1]))


def fill_page(text: str, results: Path) -> str:
    """The text with the tables between the marks; departures and splits where it has marks."""
    pattern = re.compile(rf"(<!-- suite(?:: (\w+))? -->\n).*?({MARKS[1]})", re.DOTALL)
    if not pattern.search(text):
        raise InvalidDataError(f"The text must have {MARKS[0]} and {MARKS[1]}, each on a line.")
    text = pattern.sub(lambda m: f"{m[1]}\n{suite_table(results, m[2])}\n\n{m[3]}", text)
    text = by_split.MARKS.sub(
        lambda m: f"{m[1]}\n{by_split.splits_table(results, m[2], m[3])}\n\n{m[4]}", text
    )
    marked = re.compile(rf"({departures.MARKS[0]}\n).*?({departures.MARKS[1]})", re.DOTALL)
    return marked.sub(lambda m: f"{m[1]}\n{departures.departures_table(results)}\n\n{m[2]}", text)


def _lines(name: str, halves: dict[str, Summary | None]) -> list[str]:
    return [
        f"| {name} | {half} | {found.n_tables} | {found.rmse:.3f} | {found.mae:.3f} "
        f"| {found.won:.0%} | {found.seconds:.2g} × |"
        for half, found in halves.items()
        if found is not None
    ]
