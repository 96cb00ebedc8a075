"""TabNSM's rank on each dataset, and the average rank of every method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets.catalog import judged_by
from tabnsm_bench.main_runs import Result, dataset_label
from tabnsm_bench.naming import display_name
from tabnsm_bench.paired import OURS, Scores, changes, compare, spread_text
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.table_text import Cell, Footnotes, TextTable

FIRST_SPLIT = 42


def leaderboard_table(results: Sequence[Result]) -> TextTable:
    """One row per dataset: TabNSM, the best other method, and TabNSM's rank.

    Methods are ranked by their mean change against TabNSM on the splits that both were run
    on, with the same arrays. TabNSM's other presets do not count.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.

    Returns
    -------
    TextTable
        Average ranks of the methods that were run on all datasets are in its notes.

    Raises
    ------
    InvalidDataError
        If there is no baseline to compare with.
    """
    metrics = _metrics(results)
    compared, notes, remarks = _without_other_presets(results, metrics)
    footnotes = Footnotes()
    rows = []
    for dataset, scores in sorted(compared.items()):
        methods = list(scores)
        best = next(method for method in methods if method != OURS)
        rank = methods.index(OURS) + 1
        change = float(changes(scores[best], scores[OURS]).mean())
        rows.append(
            [
                Cell(dataset),
                Cell(metrics[dataset].upper()),
                Cell(str(len(scores[OURS]))),
                Cell(
                    spread_text(list(scores[OURS].values())),
                    "best" if rank == 1 else "",
                    footnotes.marks(tuple(dict.fromkeys(notes[OURS, dataset]))),
                ),
                Cell(f"{rank} of {len(methods)}"),
                Cell(
                    display_name(best) + _if_fewer(scores[best], scores[OURS]),
                    marks=footnotes.marks(tuple(dict.fromkeys(notes[best, dataset]))),
                ),
                Cell(spread_text(list(scores[best].values())), "" if rank == 1 else "best"),
                Cell(f"{change:+.1f}"),
            ]
        )
    headings = ["dataset", "score", "splits", "TabNSM", "rank", "best other method", "its score"]
    return TextTable(
        [*headings, "change against TabNSM %"],
        rows,
        n_names=2,
        notes=[
            "Mean ± standard deviation over splits; a positive change is worse than TabNSM, over "
            "the splits that both have.",
            _average_ranks(compared),
            *remarks,
        ],
        footnotes=footnotes.notes,
    )


def summary_table(results: Sequence[Result], unseen: Sequence[Result]) -> TextTable:
    """One row per method: average ranks on two groups of datasets, and its time to fit.

    Parameters
    ----------
    results : sequence of dict
        Runs on the datasets that were used in development, as from ``load_results``.
    unseen : sequence of dict
        Runs on datasets that were never used in development; may be empty.

    Returns
    -------
    TextTable
        Of the methods that were run on all datasets of the first group.
    """
    groups = [_without_other_presets(runs, _metrics(runs))[0] for runs in (results, unseen) if runs]
    ranks = [_ranks(compared) for compared in groups]
    times = _times_over_catboost(results)
    rows = []
    for method in sorted(ranks[0], key=lambda method: (ranks[0][method], method)):
        places = [f"{found[method]:.1f}" if method in found else "–" for found in ranks]
        time = f"{times[method]:.2g} ×" if method in times else "–"
        rows.append([Cell(text) for text in (display_name(method), *places, time)])
    names = ("used in development", "never used")
    headings = [
        f"average rank, {len(compared)} tables {name}"
        for compared, name in zip(groups, names, strict=False)
    ]
    return TextTable(["method", *headings, "time to fit, CatBoost = 1"], rows)


def _ranks(compared: Mapping[str, Mapping[str, Scores]]) -> dict[str, float]:
    """Average rank of the methods that were run on all datasets, among themselves."""
    everywhere = set.intersection(*(set(scores) for scores in compared.values()))
    ranks: dict[str, list[int]] = defaultdict(list)
    for scores in compared.values():
        for place, method in enumerate((m for m in scores if m in everywhere), start=1):
            ranks[method].append(place)
    return {method: float(np.mean(places)) for method, places in ranks.items()}


def _times_over_catboost(results: Sequence[Result]) -> dict[str, float]:
    """Median over datasets of the seconds of a fit over CatBoost's, on the first split."""
    seconds: dict[str, dict[str, float]] = defaultdict(dict)
    for result in results:
        spec = RunSpec.from_dict(result["spec"])
        if spec.encoding == "default" and spec.split == FIRST_SPLIT and result["state"] == "done":
            seconds[spec.method][dataset_label(spec)] = result["fit_seconds"]
    reference = seconds.get("catboost", {})
    times = {}
    for method, found in seconds.items():
        ratios = [found[name] / reference[name] for name in found.keys() & reference.keys()]
        if ratios:
            times[method] = float(np.median(ratios))
    return times


def _average_ranks(compared: Mapping[str, Mapping[str, Scores]]) -> str:
    averages = _ranks(compared)
    ranks = ", ".join(
        f"{display_name(method)} {averages[method]:.2f}"
        for method in sorted(averages, key=lambda method: (averages[method], method))
    )
    return (
        f"Average rank among the {len(averages)} methods that were run on all "
        f"{len(compared)} datasets: {ranks}."
    )


def _metrics(results: Sequence[Result]) -> dict[str, str]:
    """What each dataset is judged by: as its runs recorded it, else as its descriptor says."""
    metrics: dict[str, str] = {}
    for result in results:
        spec = RunSpec.from_dict(result["spec"])
        recorded = (result["dataset"] or {}).get("judged_by")
        if recorded or dataset_label(spec) not in metrics:
            metrics[dataset_label(spec)] = recorded or judged_by(spec.dataset)
    return metrics


def _without_other_presets(
    results: Sequence[Result], metrics: Mapping[str, str]
) -> tuple[dict[str, dict[str, Scores]], dict[tuple[str, str], list[str]], list[str]]:
    by_rmse, notes, remarks = compare(results, "rmse")
    by_mae, _, _ = compare(results, "mae")
    compared = {}
    for dataset in by_rmse:
        scores = (by_mae if metrics[dataset] == "mae" else by_rmse)[dataset]
        kept = {m: s for m, s in scores.items() if m == OURS or not m.startswith("tabnsm-")}
        if len(kept) > 1:
            compared[dataset] = kept
    if not compared:
        raise InvalidDataError(
            f"Ranks need runs of {OURS} and of a baseline, with --encoding default, on the same "
            "split, got none of a baseline. Make some with: tabnsm bench run --encoding default"
        )
    return compared, notes, remarks


def _if_fewer(theirs: Scores, ours: Scores) -> str:
    return "" if len(theirs) == len(ours) else f" ({len(theirs)} of the splits)"
