"""Every baseline on a few rows: whether it runs here, and whether it beats the mean."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tabnsm_bench.baselines.catalog import BASELINES, TABNSM_METHODS
from tabnsm_bench.main_runs import Result, dataset_label
from tabnsm_bench.naming import display_name
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.table_text import Cell, Footnotes, TextTable
from tabnsm_bench.tables import MISSING

_NOTE = (
    "R2 on the test rows, 0 for the mean of the training rows and 1 for exact predictions, and "
    "seconds of one core to fit. These runs show that a method works, not how good it is: rows and "
    "epochs are few."
)


def baseline_table(results: Sequence[Result]) -> TextTable:
    """One row per baseline, with R2 and seconds on each dataset, or why there is none.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``; of runs with the same method and dataset the
        one with the most epochs counts.

    Returns
    -------
    TextTable
    """
    runs: dict[tuple[str, str], Result] = {}
    for result in sorted(results, key=lambda r: r["spec"]["max_epochs"] or math.inf):
        spec = RunSpec.from_dict(result["spec"])
        runs[spec.method, dataset_label(spec)] = result
    datasets = sorted({dataset for _, dataset in runs})
    ours = [method for method in TABNSM_METHODS if any(method == m for m, _ in runs)]
    footnotes = Footnotes()
    rows, n_better = [], 0
    for key in [*ours, *BASELINES]:
        found = [runs.get((key, dataset)) for dataset in datasets]
        cells = [cell for result in found for cell in _cells(key, result, footnotes)]
        n_better += bool(found) and all(map(_is_better, found))
        rows.append([Cell(display_name(key)), Cell(_provider(key)), *cells])
    headings = ["method", "provided by"]
    for dataset in datasets:
        headings += [dataset, "s"]
    better = f"{n_better} of {len(rows)} methods are better than the mean on every dataset."
    return TextTable(headings, rows, n_names=2, notes=[better, _NOTE], footnotes=footnotes.notes)


def _provider(key: str) -> str:
    info = BASELINES.get(key)
    if info is None:
        return "tabnsm"
    own = info.provider if info.provider != "tabnsm" else "written here"
    return f"{own} (env {info.environment})" if info.environment else own or MISSING


def _is_better(result: Result | None) -> bool:
    return bool(
        result and result["state"] == "done" and (result["metrics"]["test"]["r2"] or 0.0) > 0
    )


def _cells(key: str, result: Result | None, footnotes: Footnotes) -> list[Cell]:
    if result is None:
        info = BASELINES.get(key)
        why = "not run" if info is None else info.why_not or f"not run. {info.reason}".strip()
        return [Cell(MISSING, marks=footnotes.marks((why,))), Cell(MISSING)]
    if result["state"] != "done":
        why = (result["error"] or result["state"]).strip().splitlines()[0]
        return [Cell(MISSING, marks=footnotes.marks((why,))), Cell(MISSING)]
    r2 = result["metrics"]["test"]["r2"]
    notes = [note for note in result["notes"] if "drawn at random" not in note]
    if not _is_better(result):
        notes.append("not better than the mean after so few epochs")
    text = MISSING if r2 is None else f"{r2:.3f}"
    return [Cell(text, marks=footnotes.marks(notes)), Cell(f"{result['fit_cpu_seconds']:.1f}")]
