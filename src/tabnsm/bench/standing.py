"""Where TabNSM stands on each dataset, and the average rank of every method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from tabnsm.bench.main_runs import Result
from tabnsm.bench.naming import display_name
from tabnsm.bench.paired import OURS, Scores, changes, compare, spread_text
from tabnsm.bench.table_text import Cell, TextTable

BY_MAE = ("ct_real_estate_partial", "us_chronic_disease_partial")
"""Datasets of which a few rows make the RMSE."""


def standing_table(results: Sequence[Result]) -> TextTable:
    """One row per dataset: TabNSM, the best other method, and TabNSM's rank.

    Methods are ranked by how much higher they are than TabNSM on the splits that both were run
    on, with the same arrays. TabNSM's other presets do not count.

    Parameters
    ----------
    results : sequence of dict
        As from ``tabnsm.bench.store.load_results``.

    Returns
    -------
    TextTable
        Average ranks of the methods that were run on all datasets are in its notes.
    """
    compared = _without_other_presets(results)
    ranks: dict[str, list[int]] = defaultdict(list)
    rows = []
    for dataset, scores in sorted(compared.items()):
        methods = list(scores)
        for place, method in enumerate(methods, start=1):
            ranks[method].append(place)
        best = next(method for method in methods if method != OURS)
        rank = methods.index(OURS) + 1
        change = float(changes(scores[best], scores[OURS]).mean())
        rows.append(
            [
                Cell(dataset),
                Cell("MAE" if dataset in BY_MAE else "RMSE"),
                Cell(str(len(scores[OURS]))),
                Cell(spread_text(list(scores[OURS].values())), "best" if rank == 1 else ""),
                Cell(f"{rank} of {len(methods)}"),
                Cell(display_name(best) + _if_fewer(scores[best], scores[OURS])),
                Cell(spread_text(list(scores[best].values())), "" if rank == 1 else "best"),
                Cell(f"{change:+.1f}"),
            ]
        )
    everywhere = {m: float(np.mean(r)) for m, r in ranks.items() if len(r) == len(compared)}
    others = [m for m, r in ranks.items() if len(r) < len(compared)]
    said = ", ".join(
        f"{display_name(method)} {rank:.2f}"
        for method, rank in sorted(everywhere.items(), key=lambda item: item[1])
    )
    notes = [f"Average rank over these {len(compared)} datasets: {said}."]
    if others:
        names = ", ".join(sorted(display_name(method) for method in others))
        notes.append(f"Run on some of them only, and ranked there: {names}.")
    headings = ["dataset", "score", "splits", "TabNSM", "rank", "best other method", "its score"]
    return TextTable([*headings, "change against TabNSM %"], rows, n_names=2, notes=notes)


def _without_other_presets(results: Sequence[Result]) -> dict[str, dict[str, Scores]]:
    by_rmse, _ = compare(results, "rmse")
    by_mae, _ = compare(results, "mae")
    compared = {}
    for dataset in by_rmse:
        scores = (by_mae if dataset in BY_MAE else by_rmse)[dataset]
        kept = {m: s for m, s in scores.items() if m == OURS or not m.startswith("tabnsm-")}
        if len(kept) > 1:
            compared[dataset] = kept
    return compared


def _if_fewer(theirs: Scores, ours: Scores) -> str:
    return "" if len(theirs) == len(ours) else f" ({len(theirs)} of the splits)"
