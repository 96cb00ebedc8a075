"""What commands show: what they are doing, and scores of one target or of several."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

LABELS = {
    "n_rows": "rows",
    "n_without_target": "rows without a target, left out",
    "rmse": "RMSE",
    "standardized_rmse": "RMSE in standard deviations",
    "mse": "MSE",
    "mae": "MAE",
    "r2": "R2",
    "spearman": "Spearman",
    "within_one_bin": "within one of 20 bins",
}
SHORT = {"standardized_rmse": "RMSE / SD", "within_one_bin": "in 1 bin"}
SHOWN_LEVEL = 0.9
"""Of the intervals in the table of several targets."""
WITHOUT_UNIT = ("standardized_rmse", "r2", "spearman", "within_one_bin")


def announce(text: str, quiet: bool) -> None:
    """Show in a terminal what begins, before the seconds in which torch is imported."""
    if not quiet and sys.stderr.isatty():
        print(text, "...", file=sys.stderr, flush=True)


def mean_metrics(targets: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Means over the targets of those metrics that have no unit.

    Examples
    --------
    >>> each = {"standardized_rmse": 0.5, "r2": 0.75, "spearman": 0.9, "within_one_bin": 1.0}
    >>> mean_metrics({"a": each, "b": each | {"r2": 0.25}})["r2"]
    0.5
    """
    scores = list(targets.values())
    return {key: sum(each[key] for each in scores) / len(scores) for key in WITHOUT_UNIT}


def print_metrics(shown: Mapping[str, Any]) -> None:
    """Metrics of one target, a line each."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for key, label in LABELS.items():
        if key in shown:
            table.add_row(label, _as_text(key, shown[key]))
    for entry in shown.get("intervals", ()):
        inside = f"{entry['coverage']:.1%}, mean width {entry['mean_width']:.4g}"
        table.add_row(f"in {entry['level']:.0%} intervals", inside)
    Console().print(table)


def print_target_metrics(shown: Mapping[str, Any]) -> None:
    """Metrics of several targets, a column each, and their means."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("target")
    keys = ("n_rows", "rmse", "standardized_rmse", "mae", "r2", "spearman", "within_one_bin")
    for key in keys:
        table.add_column(SHORT.get(key, LABELS[key]), justify="right")
    table.add_column(f"in {SHOWN_LEVEL:.0%} interval", justify="right")
    for name, scores in {**shown["targets"], "mean": shown["mean"]}.items():
        cells = [_as_text(key, scores[key], 4) if key in scores else "" for key in keys]
        at_level = [e for e in scores.get("intervals", ()) if e["level"] == SHOWN_LEVEL]
        table.add_row(escape(name), *cells, *(f"{e['coverage']:.1%}" for e in at_level))
    console = Console()
    console.print(table)
    console.print(
        f"{shown['n_rows']:,} rows; {shown['n_without_target']:,} without any target, left out",
        highlight=False,
    )


def _as_text(key: str, value: float, digits: int = 6) -> str:
    if key == "within_one_bin":
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"
