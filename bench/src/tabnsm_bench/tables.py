"""Tables of results: our figures beside the paper's, the best of each family, and the tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tabnsm.errors import InvalidDataError
from tabnsm_bench.naming import NEW, display_name, family, paper_name
from tabnsm_bench.paper import OURS, paper_facts, paper_families, paper_printed, paper_scores
from tabnsm_bench.rank_tests import rank_methods
from tabnsm_bench.scores import ScoreTable
from tabnsm_bench.statistics import Statistics
from tabnsm_bench.table_text import Cell, Footnotes, TextTable, emphases, score_text

MISSING = "–"
# The ratio is 1.25 for normal errors, and above this where a few rows carry the squared error.
HEAVY_TAIL = 4.0


def results_table(table: ScoreTable, by_mae: ScoreTable | None = None) -> TextTable:
    """Mean and standard deviation of every method on every dataset, best average rank first.

    Parameters
    ----------
    table : ScoreTable
        As from `tabnsm_bench.scores.collect_scores`. A dataset that the paper has too gets a
        second column with the paper's RMSE, if the table's metric is the RMSE.
    by_mae : ScoreTable or None
        The same runs by their mean absolute error, to show beside the RMSE on heavy-tailed
        datasets, and to rank by.

    Returns
    -------
    TextTable
    """
    if not table.methods:
        raise InvalidDataError(
            "A table needs at least 1 finished run, got none. Make some with: tabnsm bench run"
        )
    averages = rank_methods(table.mean).mean(axis=1)
    order = np.argsort(averages, kind="stable")
    table = table.select(methods=[table.methods[i] for i in order])
    heavy = [] if by_mae is None else heavy_tailed(table, by_mae)
    footnotes = Footnotes()
    headings = ["method", "average rank"]
    columns: list[list[Cell]] = [
        [Cell(display_name(method)) for method in table.methods],
        [Cell(f"{averages[i]:.2f}") for i in order],
    ]
    if by_mae is not None and heavy:
        by_mae = by_mae.select(methods=table.methods)
        headings.append("average rank by MAE")
        columns.append([Cell(f"{rank:.2f}") for rank in rank_methods(by_mae.mean).mean(axis=1)])
    for dataset in table.datasets:
        counterpart = table.counterparts.get(dataset)
        known_as = "" if counterpart in (None, dataset) else counterpart
        part = "partial" if dataset in table.partial else ""
        details = ", ".join(filter(None, (known_as, part)))
        headings.append(f"{dataset} ({details})" if details else dataset)
        columns.append(_score_column(table, dataset, footnotes))
        if by_mae is not None and dataset in heavy:
            headings.append(f"{dataset}: MAE")
            columns.append(_score_column(by_mae, dataset, footnotes))
        if counterpart is not None and table.metric == "rmse":
            headings.append(f"{counterpart} in the paper")
            columns.append(_paper_column(table.methods, counterpart))
    rows = list(zip(*columns, strict=True))
    notes = _notes(table)
    if heavy:
        notes.append(
            f"Heavy-tailed: {', '.join(heavy)}. A few rows carry most of the squared error there, "
            "so that the RMSE says how a method does on them; the MAE beside it says how it does "
            "on the others."
        )
    return TextTable(headings, rows, notes=notes, footnotes=footnotes.notes)


def heavy_tailed(by_rmse: ScoreTable, by_mae: ScoreTable) -> list[str]:
    """Datasets whose squared error is that of a few rows: RMSE far above MAE.

    Parameters
    ----------
    by_rmse, by_mae : ScoreTable
        The same runs by two metrics.

    Returns
    -------
    list of str
        Those on which the median over methods of RMSE / MAE is above 4.
    """
    if by_rmse.metric != "rmse" or not set(by_rmse.methods) <= set(by_mae.methods):
        return []
    found = []
    for dataset in by_rmse.datasets:
        ratios = [
            by_rmse.score(method, dataset) / mae
            for method in by_rmse.methods
            if dataset in by_mae.datasets and (mae := by_mae.score(method, dataset)) > 0
        ]
        if ratios and np.nanmedian(ratios) > HEAVY_TAIL:
            found.append(dataset)
    return found


def paper_table() -> TextTable:
    """The paper's full table as it prints it.

    Returns
    -------
    TextTable
    """
    facts = paper_facts()
    datasets = tuple(facts["datasets"])
    names = [entry["name"] for entry in facts["methods"]]
    columns = [
        [Cell(entry["family"]) for entry in facts["methods"]],
        [Cell(name) for name in names],
        *(_printed_cells([paper_printed(name, dataset) for name in names]) for dataset in datasets),
    ]
    marks = "; ".join(f"{mark} {meaning}" for mark, meaning in facts["marks"].items())
    return TextTable(
        ["family", "method", *datasets],
        list(zip(*columns, strict=True)),
        n_names=2,
        is_grouped=True,
        notes=(f"Test RMSE, {facts['source']}.", f"{marks}."),
    )


def family_table(table: ScoreTable) -> TextTable:
    """The best score of each family on each dataset, and ours: the paper's compact table.

    Parameters
    ----------
    table : ScoreTable
        Scores.

    Returns
    -------
    TextTable
    """

    def text(method: str, dataset: str) -> str:
        i, j = table.methods.index(method), table.datasets.index(dataset)
        return _text(table.mean[i, j], table.std[i, j])

    return _family_table(table, {method: family(method) for method in table.methods}, text)


def paper_family_table() -> TextTable:
    """The paper's compact table, from its full one."""
    return _family_table(paper_scores(), paper_families(), lambda m, d: paper_printed(m, d) or "")


def statistics_table(found: Statistics, names: Mapping[str, str]) -> TextTable:
    """Average ranks and tests, best first.

    Parameters
    ----------
    found : Statistics
        As from `tabnsm_bench.statistics.analyse`.
    names : mapping of str to str
        Name of each method for readers.

    Returns
    -------
    TextTable
    """
    tests, nemenyi, friedman = found.wilcoxon, found.nemenyi, found.friedman
    rows = []
    for method, rank in found.average_ranks.items():
        complete = nemenyi.average_ranks.get(method)
        worse = " *" if method in nemenyi.worse_than_ours else ""
        rows.append(
            [
                Cell(names.get(method, method)),
                Cell(f"{rank:.2f}"),
                Cell(MISSING if complete is None else f"{complete:.2f}{worse}"),
                Cell(MISSING if method == tests.ours else f"{tests.p[method]:.4f}"),
                Cell(MISSING if method == tests.ours else f"{tests.corrected_p[method]:.4f}"),
                Cell(str(len(found.missing.get(method, ())))),
            ]
        )
    ours = names.get(tests.ours, tests.ours)
    notes = (
        f"Ranks by test {found.metric.upper()} over {', '.join(found.datasets)}; a missing result "
        "has the worst rank.",
        f"Friedman on {len(friedman.methods)} methods and {len(friedman.datasets)} datasets "
        f"({', '.join(friedman.datasets)}): chi2({friedman.degrees_of_freedom}) = "
        f"{friedman.chi2:.1f}, p = {friedman.p:.3g}; corrected for ties "
        f"{friedman.chi2_tie_corrected:.1f}, p = {friedman.p_tie_corrected:.3g}.",
        f"Nemenyi: critical difference {nemenyi.cd:.1f} at {nemenyi.alpha:g}; * is significantly "
        f"worse than {ours}.",
        f"Wilcoxon: one-sided signed-rank test on ranks that {ours} is better, corrected by "
        f"Benjamini-Hochberg; the largest corrected p is {tests.max_corrected_p:.4f}.",
        *found.notes,
    )
    headings = ["method", "average rank", "Friedman rank", "p", "corrected p", "missing"]
    return TextTable(headings, rows, notes=notes)


def _family_table(
    table: ScoreTable, families: Mapping[str, str], text: Callable[[str, str], str]
) -> TextTable:
    order = [*dict.fromkeys(paper_families().values()), NEW]
    order = [*(name for name in order if name != OURS), OURS]
    in_family = {
        name: [method for method in table.methods if families[method] == name] for name in order
    }
    columns = [
        [
            Cell(
                OURS
                if name == OURS
                else f"best {name} ({len(found)} method{'s' * (len(found) > 1)})"
            )
            for name, found in in_family.items()
            if found
        ]
    ]
    for dataset in table.datasets:
        texts = []
        for found in filter(None, in_family.values()):
            known = [m for m in found if not math.isnan(table.score(m, dataset))]
            best = min(known, key=lambda m: table.score(m, dataset), default=None)
            texts.append(MISSING if best is None else text(best, dataset))
        columns.append(_cells(texts))
    return TextTable(["family", *table.datasets], list(zip(*columns, strict=True)))


def _score_column(table: ScoreTable, dataset: str, footnotes: Footnotes) -> list[Cell]:
    j = table.datasets.index(dataset)
    cells = _cells([_text(*pair) for pair in zip(table.mean[:, j], table.std[:, j], strict=True)])
    return [
        Cell(cell.text, cell.emphasis, footnotes.marks(table.notes.get((method, dataset), ())))
        for method, cell in zip(table.methods, cells, strict=True)
    ]


def _paper_column(methods: Sequence[str], dataset: str) -> list[Cell]:
    """The paper's figures; every preset of ours is compared with its one TabNSM."""
    names = [paper_name(method) for method in methods]
    return _printed_cells(
        [None if name is None else paper_printed(name, dataset) for name in names]
    )


def _printed_cells(printed: Sequence[str | None]) -> list[Cell]:
    return _cells([MISSING if text is None else text for text in printed])


def _cells(texts: Sequence[str]) -> list[Cell]:
    """Cells of a column, its best and second marked by what is printed."""
    scores = [float(text.split()[0]) if text[0].isdigit() else math.nan for text in texts]
    return [Cell(text, mark) for text, mark in zip(texts, emphases(scores), strict=True)]


def _text(mean: float, std: float = math.nan) -> str:
    return MISSING if math.isnan(mean) else score_text(mean, std)


def _notes(table: ScoreTable) -> list[str]:
    counts = sorted(set(table.n_runs[table.n_runs > 0].tolist()))
    runs = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    notes = [
        f"Test {table.metric.upper()}, lower is better; mean ± standard deviation over {runs} "
        f"run{'s' * (counts[-1] > 1)} with different seeds or splits. Best in bold, second "
        "underlined, column by column."
    ]
    partial = [name for name in table.datasets if name in table.partial]
    if partial:
        notes.append(
            f"Partial: {', '.join(partial)}. Only a part of the table was available or was used: "
            "compare methods with each other there, not with the paper."
        )
    return [*notes, *table.remarks]
