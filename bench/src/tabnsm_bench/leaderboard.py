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
from tabnsm_bench.tables import MISSING

BEST = "tabnsm-best"
FIRST_SPLIT = 42


def leaderboard_table(results: Sequence[Result], ours: str = OURS) -> TextTable:
    """One row per dataset: TabNSM, the best other method, and TabNSM's rank.

    Methods are ranked by their mean change against TabNSM on the splits that both were run
    on, with the same arrays. TabNSM's other presets do not count.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    ours : {"tabnsm-default", "tabnsm-best"}
        TabNSM's preset.

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
    compared, notes, remarks = _without_other_presets(results, metrics, ours)
    footnotes = Footnotes()
    rows = []
    for dataset, scores in sorted(compared.items()):
        methods = list(scores)
        best = next(method for method in methods if method != ours)
        rank = methods.index(ours) + 1
        change = float(changes(scores[best], scores[ours]).mean())
        rows.append(
            [
                Cell(dataset),
                Cell(metrics[dataset].upper()),
                Cell(str(len(scores[ours]))),
                Cell(
                    spread_text(list(scores[ours].values())),
                    "best" if rank == 1 else "",
                    footnotes.marks(tuple(dict.fromkeys(notes[ours, dataset]))),
                ),
                Cell(f"{rank} of {len(methods)}"),
                Cell(
                    display_name(best) + _if_fewer(scores[best], scores[ours]),
                    marks=footnotes.marks(tuple(dict.fromkeys(notes[best, dataset]))),
                ),
                Cell(spread_text(list(scores[best].values())), "" if rank == 1 else "best"),
                Cell(f"{change:+.1f}"),
            ]
        )
    name = "TabNSM" if ours == OURS else display_name(ours)
    headings = ["dataset", "score", "splits", name, "rank", "best other method", "its score"]
    return TextTable(
        [*headings, f"change against {name} %"],
        rows,
        n_names=2,
        notes=[
            f"Mean ± standard deviation over splits; a positive change is worse than {name}, over "
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
        Of the methods that were run on all datasets of the first group. TabNSM's preset "best" is
        ranked in the place of the default.
    """
    groups = [_without_other_presets(runs, _metrics(runs))[0] for runs in (results, unseen) if runs]
    ranks = [_ranks(compared) for compared in groups]
    times = _times_over_catboost(results)
    best = [_rank_of_best(runs, set(groups[k])) for k, runs in enumerate((results, unseen)) if runs]
    rows = []
    for method in sorted(ranks[0], key=lambda method: (ranks[0][method], method)):
        places = [f"{found[method]:.1f}" if method in found else MISSING for found in ranks]
        rows.append((display_name(method), *places, times.get(method, MISSING)))
        if method == OURS and any(place != MISSING for place in best):
            rows.append((display_name(BEST), *best, times.get(BEST, MISSING)))
    names = ("used in development", "never used")
    headings = [
        f"average rank, {len(compared)} tables {name}"
        for compared, name in zip(groups, names, strict=False)
    ]
    headings = ["method", *headings, "time to fit, CatBoost = 1"]
    return TextTable(headings, [[Cell(text) for text in row] for row in rows])


def _rank_of_best(results: Sequence[Result], datasets: set[str]) -> str:
    """Average rank of `preset="best"` among the others in the place of the default."""
    if not any(result["spec"]["method"] == BEST for result in results):
        return MISSING
    compared, _, _ = _without_other_presets(results, _metrics(results), BEST)
    return f"{_ranks(compared)[BEST]:.1f}" if set(compared) == datasets else MISSING


def _ranks(compared: Mapping[str, Mapping[str, Scores]]) -> dict[str, float]:
    """Average rank of the methods that were run on all datasets, among themselves."""
    everywhere = set.intersection(*(set(scores) for scores in compared.values()))
    ranks: dict[str, list[int]] = defaultdict(list)
    for scores in compared.values():
        for place, method in enumerate((m for m in scores if m in everywhere), start=1):
            ranks[method].append(place)
    return {method: float(np.mean(places)) for method, places in ranks.items()}


def _times_over_catboost(results: Sequence[Result]) -> dict[str, str]:
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
            times[method] = f"{np.median(ratios):.2g} ×"
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
    results: Sequence[Result], metrics: Mapping[str, str], ours: str = OURS
) -> tuple[dict[str, dict[str, Scores]], dict[tuple[str, str], list[str]], list[str]]:
    by_rmse, notes, remarks = compare(results, "rmse", ours)
    by_mae, _, _ = compare(results, "mae", ours)
    compared = {}
    for dataset in by_rmse:
        scores = (by_mae if metrics[dataset] == "mae" else by_rmse)[dataset]
        kept = {m: s for m, s in scores.items() if m == ours or not m.startswith("tabnsm-")}
        if len(kept) > 1:
            compared[dataset] = kept
    if not compared:
        raise InvalidDataError(
            f"Ranks need runs of {ours} and of a baseline, with --encoding default, on the same "
            "split, got none of a baseline. Make some with: tabnsm bench run --encoding default"
        )
    return compared, notes, remarks


def _if_fewer(theirs: Scores, ours: Scores) -> str:
    return "" if len(theirs) == len(ours) else f" ({len(theirs)} of the splits)"
