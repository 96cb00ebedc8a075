"""Which runs count as a method's result on a dataset, and which belong to a study."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tabnsm_bench.protocol import RunSpec

Result = Mapping[str, Any]
Runs = list[tuple[RunSpec, Result]]
Cell = tuple[str, str]  # method and dataset

# Share of a time limit from which on it may have mattered: networks end with a whole epoch.
_NEAR_LIMIT = 0.5


def main_runs(results: Sequence[Result], metric: str = "rmse", encoding: str = "paper") -> Runs:
    """All runs of `group_runs`, one after the other.

    Parameters
    ----------
    results, metric, encoding
        As there.

    Returns
    -------
    list of (RunSpec, dict)
    """
    groups, _ = group_runs(results, metric, encoding)
    return [run for runs in groups.values() for run in runs]


def dataset_label(spec: RunSpec) -> str:
    """Name of the dataset, with the target if it was chosen and the number of rows if it was cut.

    Examples
    --------
    >>> dataset_label(RunSpec("ridge", "blog_feedback", max_rows=5000))
    'blog_feedback, 5000 rows'
    >>> dataset_label(RunSpec("ridge", "sales", target="price"))
    'sales, target price'
    """
    target = "" if spec.target is None else f", target {spec.target}"
    rows = "" if spec.max_rows is None else f", {spec.max_rows} rows"
    return f"{spec.dataset}{target}{rows}"


def run_notes(spec: RunSpec, result: Result) -> list[str]:
    """What a reader should know about a run: its own notes, and the caps that it had.

    A limit of time is left out where the run took much less.

    Examples
    --------
    >>> run_notes(RunSpec("mlp", "cpu_small", max_epochs=20), {"notes": []})
    ['at most 20 epochs']
    >>> run_notes(RunSpec("ridge", "cpu_small", max_epochs=20), {"notes": [], "settings": {}})
    []
    >>> spec = RunSpec("ridge", "cpu_small", time_limit=60)
    >>> [run_notes(spec, {"notes": [], "fit_seconds": seconds}) for seconds in (3, 59)]
    [[], ['at most 60 seconds']]
    """
    notes = list(result["notes"])
    if spec.max_epochs is not None and _has_epochs(result.get("settings")):
        notes.append(f"at most {spec.max_epochs} epochs")
    if spec.time_limit is not None and result["fit_seconds"] > _NEAR_LIMIT * spec.time_limit:
        notes.append(f"at most {spec.time_limit:g} seconds")
    return notes


def group_runs(
    results: Sequence[Result],
    metric: str = "rmse",
    encoding: str = "paper",
    *,
    common_splits: bool = True,
) -> tuple[dict[Cell, Runs], dict[Cell, list[str]]]:
    """The finished runs of each method on each dataset.

    Runs that belong to a study (options after the method's name but for "tuned", a share of the
    columns or of the rows) are left out. Of runs with different caps on time or epochs, those
    with the loosest caps count. On each dataset those splits count that all its methods were run
    on, if there are any: else averages would not be over the same rows. A table on which TabNSM ran
    alone is left out where other tables have baselines: the best of one is none. One cut to
    `max_rows` is a dataset of its own, if others than TabNSM ran on it; else it is a study's.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    metric : {"rmse", "mae"}
        Score that a run must have.
    encoding : {"paper", "default"}
        Whose arrays the baselines had; TabNSM always has its preset's own.
    common_splits : bool, default True
        Whether to leave out splits that not all methods of a dataset were run on.

    Returns
    -------
    groups : dict of (method, dataset) to list of (RunSpec, dict)
    failures : dict of (method, dataset) to list of str
        Why other runs give no score; a cell may have failures alone.
    """
    groups: dict[Cell, Runs] = defaultdict(list)
    failures: dict[Cell, list[str]] = defaultdict(list)
    for result in results:
        spec = RunSpec.from_dict(result["spec"])
        if not _is_main_run(spec, encoding):
            continue
        cell = (spec.method, dataset_label(spec))
        failure = _failure(result, metric)
        if failure is None:
            groups[cell].append((spec, result))
        else:
            failures[cell].append(failure)
    compared = {label for method, label in groups if not method.startswith("tabnsm-")}
    loosest = {
        cell: _loosest(runs)
        for cell, runs in groups.items()
        if cell[1] in compared or (not compared and runs[0][0].max_rows is None)
    }
    return _on_common_splits(loosest) if common_splits else loosest, failures


def count_other_encoding(results: Sequence[Result], encoding: str) -> int:
    """How many finished runs of baselines count only with the other encoding.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    encoding : {"paper", "default"}
        The encoding that counts.

    Returns
    -------
    int
    """
    specs = [RunSpec.from_dict(r["spec"]) for r in results if r["state"] == "done"]
    return sum(
        _is_main_run(spec, spec.encoding)
        for spec in specs
        if spec.encoding != encoding and not spec.method_key.startswith("tabnsm-")
    )


def _has_epochs(settings: Mapping[str, Any] | None) -> bool:
    """Whether a method has epochs to limit; one whose settings are unknown may have."""
    if settings is None:
        return True
    known = {*settings, *(settings.get("options") or {})}
    return bool(known & {"epochs", "max_epochs", "n_epochs"})


def _is_main_run(spec: RunSpec, encoding: str) -> bool:
    whole = spec.feature_fraction == 1 and spec.sample_fraction == 1
    own = spec.encoding == encoding or spec.method_key.startswith("tabnsm-")
    # A method that was tuned is one to compare with; any other option makes it a study's.
    return whole and own and set(spec.method_options) <= {"tuned"}


def _loosest(runs: Runs) -> Runs:
    def caps(spec: RunSpec) -> tuple[float, float]:
        return (spec.max_epochs or math.inf, spec.time_limit or math.inf)

    loosest = max(caps(spec) for spec, _ in runs)
    return [(spec, result) for spec, result in runs if caps(spec) == loosest]


def _on_common_splits(groups: dict[Cell, Runs]) -> dict[Cell, Runs]:
    common: dict[str, set[int]] = {}
    for (_, dataset), runs in groups.items():
        splits = {spec.split for spec, _ in runs}
        common[dataset] = common.get(dataset, splits) & splits
    return {
        (method, dataset): [run for run in runs if run[0].split in common[dataset]] or runs
        for (method, dataset), runs in groups.items()
    }


def _failure(result: Result, metric: str) -> str | None:
    """Why a run gives no score, or None if it gives one."""
    if result["state"] != "done":
        lines = (result["error"] or "").strip().splitlines()
        return f"{result['state']}: {lines[-1]}" if lines else str(result["state"])
    score = result["metrics"]["test"][metric]
    return None if score is not None and math.isfinite(score) else f"diverged: {metric} {score}"
