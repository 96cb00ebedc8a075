"""Methods against TabNSM, split by split: both had the same rows and the same preprocessing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tabnsm.bench.main_runs import Result, group_runs, run_notes
from tabnsm.bench.naming import display_name
from tabnsm.bench.table_text import Cell, Footnotes, TextTable, score_text
from tabnsm.errors import InvalidDataError

OURS = "tabnsm-default"
Scores = Mapping[int, float]  # by split, averaged over seeds


def paired_table(results: Sequence[Result], metric: str = "rmse") -> TextTable:
    """Every method's scores beside TabNSM's on the same splits, the best of a dataset first.

    Baselines have the arrays of TabNSM's default preset, so that only the models differ.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm.bench.store.load_results``.
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
    groups, _ = group_runs(results, metric, "default", common_splits=False)
    scores: dict[str, dict[str, Scores]] = defaultdict(dict)
    notes: dict[tuple[str, str], list[str]] = {}
    for (method, dataset), runs in groups.items():
        by_split: dict[int, list[float]] = defaultdict(list)
        for spec, result in runs:
            by_split[spec.split].append(float(result["metrics"]["test"][metric]))
        scores[dataset][method] = {split: float(np.mean(v)) for split, v in by_split.items()}
        notes[method, dataset] = [note for run in runs for note in run_notes(*run)]
    footnotes = Footnotes()
    rows = []
    for dataset in sorted(scores):
        ours = scores[dataset].get(OURS)
        if ours is None or len(scores[dataset]) < 2:
            continue
        compared = {
            method: shared
            for method, theirs in scores[dataset].items()
            if (shared := {split: theirs[split] for split in sorted(theirs) if split in ours})
        }
        by_change = sorted(compared, key=lambda method: _changes(compared[method], ours).mean())
        for method in by_change:
            marks = footnotes.marks(tuple(dict.fromkeys(notes[method, dataset])))
            rows.append([Cell(dataset), *_row(method, compared[method], ours, marks)])
    if not rows:
        raise InvalidDataError(
            f"A comparison needs runs of {OURS} and of another method, with --encoding default, "
            "on the same split, got none. Make some with: tabnsm bench run --encoding default"
        )
    headings = ["dataset", "method", "splits", f"test {metric.upper()}", "TabNSM on these"]
    return TextTable(
        [*headings, "change against TabNSM %", "TabNSM better on"],
        rows,
        n_names=2,
        is_grouped=True,
        notes=[
            "Mean ± standard deviation over splits; a positive change is worse than TabNSM. The "
            "change is the mean of those on each split, ± their standard deviation."
        ],
        footnotes=footnotes.notes,
    )


def _changes(theirs: Scores, ours: Scores) -> np.ndarray:
    return np.array([100 * (theirs[split] / ours[split] - 1) for split in theirs])


def _row(method: str, theirs: Scores, ours: Scores, marks: tuple[int, ...]) -> list[Cell]:
    reference = [ours[split] for split in theirs]
    is_ours = method == OURS
    changes = _changes(theirs, ours)
    n_better = sum(ours[split] < score for split, score in theirs.items())
    return [
        Cell(display_name(method), "best" if is_ours else "", marks),
        Cell(str(len(theirs))),
        Cell(_spread(list(theirs.values()))),
        Cell("" if is_ours else _spread(reference)),
        Cell("" if is_ours else _signed(changes)),
        Cell("" if is_ours else f"{n_better} of {len(theirs)}"),
    ]


def _spread(values: Sequence[float]) -> str:
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return score_text(float(np.mean(values)), std)


def _signed(changes: np.ndarray) -> str:
    spread = f" ± {changes.std(ddof=1):.1f}" if len(changes) > 1 else ""
    return f"{changes.mean():+.1f}{spread}"
