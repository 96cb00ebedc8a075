"""Methods against TabNSM, split by split: both had the same rows and the same preprocessing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm_bench.evidence import Provenance
from tabnsm_bench.main_runs import Result, group_runs, run_notes
from tabnsm_bench.naming import display_name
from tabnsm_bench.table_text import Cell, Footnotes, TextTable, score_text

OURS = "tabnsm-default"
Scores = Mapping[int, float]  # by split, averaged over seeds


def paired_table(results: Sequence[Result], metric: str = "rmse") -> TextTable:
    """Every method's scores beside TabNSM's on the same splits, the best of a dataset first.

    Baselines have the arrays of TabNSM's default preset, so that only the models differ.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    metric : {"rmse", "mae"}
        Score to compare.

    Returns
    -------
    TextTable

    Raises
    ------
    InvalidDataError
        If TabNSM's default preset has not been run.
    """
    compared, notes, remarks = compare(results, metric)
    footnotes = Footnotes()
    rows = []
    for dataset, scores in compared.items():
        for method in scores:
            marks = footnotes.marks(tuple(dict.fromkeys(notes[method, dataset])))
            rows.append([Cell(dataset), *_row(method, scores[method], scores[OURS], marks)])
    headings = ["dataset", "method", "splits", f"test {metric.upper()}", "TabNSM on these"]
    return TextTable(
        [*headings, "change against TabNSM %", "TabNSM better on"],
        rows,
        n_names=2,
        is_grouped=True,
        notes=[
            "Mean ± standard deviation over splits; a positive change is worse than TabNSM. The "
            "change is the mean of those on each split, ± their standard deviation.",
            *remarks,
        ],
        footnotes=footnotes.notes,
    )


def compare(
    results: Sequence[Result], metric: str, ours: str = OURS
) -> tuple[dict[str, dict[str, Scores]], dict[tuple[str, str], list[str]], list[str]]:
    """Scores of each method on the splits that TabNSM was run on, too.

    Parameters
    ----------
    results, metric
        As for `paired_table`.
    ours : str
        The preset of TabNSM that the others are compared with.

    Returns
    -------
    scores : dict
        By dataset and then by method, the one with the lowest change against TabNSM first.
    notes : dict
        Of each method and dataset.
    remarks : list of str
        On all runs together.

    Raises
    ------
    InvalidDataError
        If there is nothing to compare.
    """
    groups, _ = group_runs(results, metric, "default", common_splits=False)
    provenance = Provenance([result for runs in groups.values() for _, result in runs])
    scores: dict[str, dict[str, Scores]] = defaultdict(dict)
    notes: dict[tuple[str, str], list[str]] = {}
    for (method, dataset), runs in groups.items():
        by_split: dict[int, list[float]] = defaultdict(list)
        for spec, result in runs:
            by_split[spec.split].append(float(result["metrics"]["test"][metric]))
        scores[dataset][method] = {split: float(np.mean(v)) for split, v in by_split.items()}
        notes[method, dataset] = [
            note
            for spec, result in runs
            for note in (*run_notes(spec, result), *provenance.notes(result))
        ]
    compared: dict[str, dict[str, Scores]] = {}
    for dataset in sorted(scores):
        reference = scores[dataset].get(ours)
        if reference is None or len(scores[dataset]) < 2:
            continue
        shared = {
            method: {split: theirs[split] for split in sorted(theirs) if split in reference}
            for method, theirs in scores[dataset].items()
        }
        methods = [method for method in shared if shared[method]]
        methods.sort(key=lambda method: float(changes(shared[method], reference).mean()))
        compared[dataset] = {method: shared[method] for method in methods}
    if not compared:
        raise InvalidDataError(
            f"A comparison needs runs of {ours} and of another method, with --encoding default, "
            "on the same split, got none. Make some with: tabnsm bench run --encoding default"
        )
    return compared, notes, provenance.remarks


def changes(theirs: Scores, ours: Scores) -> np.ndarray:
    """How much higher a score is than TabNSM's, in %, split by split."""
    return np.array([100 * (theirs[split] / ours[split] - 1) for split in theirs])


def _row(method: str, theirs: Scores, ours: Scores, marks: tuple[int, ...]) -> list[Cell]:
    reference = [ours[split] for split in theirs]
    is_ours = method == OURS
    higher = changes(theirs, ours)
    n_better = sum(ours[split] < score for split, score in theirs.items())
    return [
        Cell(display_name(method), "best" if is_ours else "", marks),
        Cell(str(len(theirs))),
        Cell(spread_text(list(theirs.values()))),
        Cell("" if is_ours else spread_text(reference)),
        Cell("" if is_ours else _signed(higher)),
        Cell("" if is_ours else f"{n_better} of {len(theirs)}"),
    ]


def spread_text(values: Sequence[float]) -> str:
    """Mean ± standard deviation."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return score_text(float(np.mean(values)), std)


def _signed(higher: np.ndarray) -> str:
    spread = f" ± {higher.std(ddof=1):.1f}" if len(higher) > 1 else ""
    return f"{higher.mean():+.1f}{spread}"
