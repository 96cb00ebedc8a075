"""The paper's main table beside ours, cell by cell, and what is still to be run for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.main_runs import Result, group_runs, run_notes
from tabnsm_bench.naming import display_name, paper_name
from tabnsm_bench.paper import paper_facts, paper_printed
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.studies import STUDIES
from tabnsm_bench.table_text import Cell, Footnotes, TextTable, emphases, score_text
from tabnsm_bench.tables import MISSING

# The datasets of the table that are at hand, and which of the paper's they are (a part of).
DATASETS = {
    "cpu_small": "CP",
    "nyc_air_quality": "AQ",
    "sarcos_test4449": "SA",
    "electric_vehicle_population": "EVP",
    "la_crime_partial": "CD",
    "us_chronic_disease_partial": "ChD",
    "us_chronic_disease_2019_2022_subset": "ChD",
    "ct_real_estate_partial": "RES",
}
_PARTS = tuple(name for name, paper in DATASETS.items() if paper not in ("CP", "AQ"))
TUNED = "tabnsm-paper+tuned=20"  # by Optuna, as in the paper
METHODS = ("tabnsm-default", "tabnsm-paper", TUNED, *BASELINES)
_WHOLE_TABLE_SECONDS = 300.0
# Their figures are drawn from the runs of the main table.
_FROM_MAIN_RUNS = ("threshold", "tradeoff")


def main_table(results: Sequence[Result]) -> TextTable:
    """Our RMSE and the paper's, two columns per dataset, a row per method of the paper.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.

    Returns
    -------
    TextTable
        Where we have no figure, the cell has the mark of the reason.
    """
    cells = _cells(results)
    footnotes = Footnotes()
    headings, columns = ["method"], [[Cell(display_name(method)) for method in METHODS]]
    for dataset, paper in DATASETS.items():
        headings += [f"{paper}: {dataset}", f"{paper} in the paper"]
        columns += [_our_column(dataset, cells, footnotes), _paper_column(paper)]
    marks = "; ".join(f"{mark} {meaning}" for mark, meaning in paper_facts()["marks"].items())
    n_cells = sum(method_cells is not None for method_cells in cells.values())
    notes = (
        "Test RMSE on the arrays of the paper's encoding (TabNSM default: its own). Best in bold, "
        "second underlined, among ours and among the paper's.",
        f"{n_cells} of {len(METHODS) * len(DATASETS)} cells are ours. {MISSING} has not been run; "
        f"the paper's marks are {marks}.",
        f"A part of the paper's table, so that its figure is of other rows: {', '.join(_PARTS)}.",
    )
    rows = list(zip(*columns, strict=True))
    return TextTable(headings, rows, notes=notes, footnotes=footnotes.notes)


def to_run_table(results: Sequence[Result]) -> TextTable:
    """Commands for the empty cells of the main table, with an estimate of hours of one core.

    The estimate takes the method's seconds per row and feature where it has been run, else 300
    seconds, which is the limit to give it.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.

    Returns
    -------
    TextTable
    """
    cells = _cells(results)
    rates = _seconds_per_cell(results)
    rows = []
    for dataset, paper in DATASETS.items():
        size = _n_cells_of(results, dataset)
        left = [
            method
            for method in METHODS
            if method != TUNED
            and cells.get((method, dataset)) is None
            and (method not in BASELINES or not BASELINES[method].why_not)
        ]
        if not left:
            continue
        seconds = sum(
            min(_WHOLE_TABLE_SECONDS, rates[m] * size) if m in rates else _WHOLE_TABLE_SECONDS
            for m in left
        )
        command = f"tabnsm bench run -m all --datasets {dataset} --time-limit 300 -d data"
        texts = (f"{paper}: {dataset}", str(len(left)), f"{seconds / 3600:.1f}", f"`{command}`")
        rows.append([Cell(text) for text in texts])
    return TextTable(["dataset", "methods left", "hours of one core", "command"], rows)


def _variant(spec: RunSpec) -> tuple[str, float, float]:
    return spec.method, spec.feature_fraction, spec.sample_fraction


def missing_studies_table(results: Sequence[Result], preset: str = "paper") -> TextTable:
    """Studies of the paper without runs, with the command and an estimate of hours of one core.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    preset : str
        Preset that the studies vary.

    Returns
    -------
    TextTable
    """
    done = {_variant(RunSpec.from_dict(r["spec"])) for r in results if r["state"] == "done"}
    seconds = median(
        r["fit_seconds"]
        for r in results
        if r["state"] == "done"
        and (r["spec"]["method"], r["spec"]["dataset"]) == (f"tabnsm-{preset}", "cpu_small")
    )
    rows = []
    for study in STUDIES.values():
        specs = study.specs("cpu_small", study.seeds, preset)
        variants = {_variant(spec) for spec in specs if spec.method_key.startswith("tabnsm-")}
        # Other runs share the reference of a study.
        is_run = len(variants & done) > 1 or variants <= done
        if is_run or not specs or not study.counterpart or study.name in _FROM_MAIN_RUNS:
            continue
        command = f"tabnsm bench study {study.name} --preset {preset} --dataset CP --max-epochs 40"
        hours = f"{len(specs) * seconds / 3600:.1f}"
        texts = (study.counterpart, str(len(specs)), hours, f"`{command} -d data`")
        rows.append([Cell(text) for text in texts])
    note = (
        f"Hours of one core, at the {seconds:.0f} s that the median run of TabNSM ({preset}) on "
        "cpu_small took."
    )
    return TextTable(["in the paper", "runs", "hours", "command"], rows, notes=[note])


Cells = Mapping[tuple[str, str], tuple[float, float, tuple[str, ...]] | None]


def _cells(results: Sequence[Result]) -> Cells:
    """Mean, standard deviation and notes of every cell; None where runs failed."""
    cells: dict[tuple[str, str], tuple[float, float, tuple[str, ...]] | None] = {}
    for dataset in DATASETS:
        # One dataset at a time: there TabNSM counts also where nothing else has been run.
        here = [
            r
            for r in results
            if r["spec"]["dataset"] == dataset and r["spec"].get("max_rows") is None
        ]
        groups, failures = group_runs(here)
        for (method, label), why in failures.items():
            if label == dataset:
                cells[method, dataset] = (np.nan, np.nan, tuple(dict.fromkeys(why)))
        for (method, _), runs in groups.items():
            values = [run["metrics"]["test"]["rmse"] for _, run in runs]
            notes = dict.fromkeys(note for spec, run in runs for note in run_notes(spec, run))
            std = float(np.std(values, ddof=1)) if len(values) > 1 else np.nan
            cells[method, dataset] = (float(np.mean(values)), std, tuple(notes))
    return {key: cell for key, cell in cells.items() if key[0] in METHODS}


def _our_column(dataset: str, cells: Cells, footnotes: Footnotes) -> list[Cell]:
    column, scores = [], []
    for method in METHODS:
        cell = cells.get((method, dataset))
        why_not = BASELINES[method].why_not if method in BASELINES else ""
        if cell is None:
            marks = footnotes.marks((why_not,)) if why_not else ()
            column.append(Cell(MISSING, marks=marks))
            scores.append(np.nan)
            continue
        mean, std, notes = cell
        text = _failure_mark(notes) if np.isnan(mean) else score_text(mean, std)
        column.append(Cell(text, marks=footnotes.marks(notes)))
        scores.append(mean)
    return [
        Cell(cell.text, emphasis, cell.marks)
        for cell, emphasis in zip(column, emphases(scores), strict=True)
    ]


def _failure_mark(notes: Sequence[str]) -> str:
    """The paper's mark for why runs gave no score.

    >>> _failure_mark(["timeout: 300 s"]), _failure_mark(["failed: MemoryError: no memory"])
    ('†', '‡')
    """
    text = " ".join(notes)
    if "timeout" in text or "time limit" in text:
        return "†"
    return "‡" if "memory" in text.lower() else "§"


def _paper_column(paper: str) -> list[Cell]:
    names = [paper_name(method) for method in METHODS]
    # TabNSM stands once in the paper, in our row with its preset.
    for method in ("tabnsm-default", TUNED):
        names[METHODS.index(method)] = None
    texts = [(name and paper_printed(name, paper)) or MISSING for name in names]
    scores = [float(text) if text[0].isdigit() else np.nan for text in texts]
    return [Cell(text, mark) for text, mark in zip(texts, emphases(scores), strict=True)]


def _seconds_per_cell(results: Sequence[Result]) -> dict[str, float]:
    """Seconds of a fit per training row and feature, the median over a method's runs."""
    rates: dict[str, list[float]] = {}
    for r in results:
        features = (r["dataset"] or {}).get("features")
        if r["state"] == "done" and features and r["split"] and r["fit_seconds"]:
            size = r["split"]["n_train"] * features
            rates.setdefault(r["spec"]["method"], []).append(r["fit_seconds"] / size)
    return {method: median(found) for method, found in rates.items()}


def _n_cells_of(results: Sequence[Result], dataset: str) -> float:
    """Training rows times features of a dataset on the paper's encoding."""
    sizes = [
        r["split"]["n_train"] * r["dataset"]["features"]
        for r in results
        if r["state"] == "done" and r["spec"]["dataset"] == dataset and r["dataset"]["features"]
    ]
    return float(max(sizes, default=0))
