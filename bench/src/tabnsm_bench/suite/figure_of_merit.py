"""What the suite says of a method: its error over that of CatBoost, table by table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, stdev
from typing import Any

from tabnsm_bench.store import load_results
from tabnsm_bench.suite.tables import PARTS, names_of

REFERENCE = "catboost"


@dataclass(frozen=True)
class Summary:
    """A method on some tables, beside another.

    Parameters
    ----------
    n_tables : int
        Tables that both have.
    rmse, mae : float
        Geometric means of the test errors over those of the other.
    won : float
        Share of the tables with a lower RMSE.
    seconds : float
        Median of the processor's seconds of a fit over the other's.
    """

    n_tables: int
    rmse: float
    mae: float
    won: float
    seconds: float


def runs_by_table(folder: Path, method: str) -> dict[str, dict[str, Any]]:
    """Finished runs of one method below a folder, by table.

    Parameters
    ----------
    folder : Path
    method : str
        With its options, as in `RunSpec`.
    """
    return {
        result["spec"]["dataset"]: result
        for result in load_results(folder)
        if result["state"] == "done" and result["spec"]["method"] == method
    }


def summarize(
    runs: Mapping[str, Any], reference: Mapping[str, Any], tables: Sequence[str]
) -> Summary | None:
    """Compare two methods on the tables that both have; None if there are none.

    Parameters
    ----------
    runs, reference : mapping of str to dict
        From `runs_by_table`.
    tables : sequence of str
        Such as those of one half.

    Examples
    --------
    >>> def run(rmse, mae, seconds):
    ...     return {"metrics": {"test": {"rmse": rmse, "mae": mae}}, "fit_cpu_seconds": seconds}
    >>> ours = {"a": run(1.0, 1.0, 30.0), "b": run(2.0, 1.0, 10.0)}
    >>> theirs = {"a": run(2.0, 1.0, 10.0), "b": run(1.0, 1.0, 10.0)}
    >>> summarize(ours, theirs, ["a", "b"])
    Summary(n_tables=2, rmse=1.0, mae=1.0, won=0.5, seconds=2.0)
    """
    common = [name for name in tables if name in runs and name in reference]
    if not common:
        return None
    ratio = {name: _ratio(runs[name], reference[name], "rmse") for name in common}
    mae = [_ratio(runs[name], reference[name], "mae") for name in common]
    seconds = sorted(
        runs[name]["fit_cpu_seconds"] / max(reference[name]["fit_cpu_seconds"], 1e-3)
        for name in common
    )
    middle = (seconds[(len(seconds) - 1) // 2] + seconds[len(seconds) // 2]) / 2
    return Summary(
        len(common),
        geometric_mean(list(ratio.values())),
        geometric_mean(mae),
        sum(value < 1 for value in ratio.values()) / len(common),
        middle,
    )


def half_summaries(
    runs: Mapping[str, Any], reference: Mapping[str, Any]
) -> dict[str, Summary | None]:
    """Summaries of the two halves, and of the tables that check them."""
    return {part: summarize(runs, reference, names_of(part)) for part in PARTS}


def _ratio(run: Any, reference: Any, metric: str) -> float:
    return float(run["metrics"]["test"][metric] / reference["metrics"]["test"][metric])


def standard_error(ratios: Sequence[float]) -> float:
    """Of a geometric mean: how much it would differ on other tables, and by chance.

    Examples
    --------
    >>> round(standard_error([0.9, 1.0, 1.1]), 3), standard_error([0.9])
    (0.058, 0.0)
    """
    if len(ratios) < 2:
        return 0.0
    logs = [math.log(ratio) for ratio in ratios]
    return geometric_mean(ratios) * stdev(logs) / math.sqrt(len(ratios))
