"""Tables inside text files: what is between two markers is regenerated from the results.

A marker is ``<!-- table: NAME -->``, and ``<!-- end -->`` closes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.baseline_table import baseline_table
from tabnsm_bench.leaderboard import BEST, leaderboard_table, summary_table
from tabnsm_bench.main_runs import Result
from tabnsm_bench.main_table import main_table, missing_studies_table, to_run_table
from tabnsm_bench.naming import display_name
from tabnsm_bench.paired import OURS, paired_table
from tabnsm_bench.scores import collect_scores
from tabnsm_bench.statistics import analyse, analyse_paper
from tabnsm_bench.studies import STUDIES
from tabnsm_bench.studies_found import study_table
from tabnsm_bench.table_text import Cell, TextTable
from tabnsm_bench.tables import (
    family_table,
    paper_family_table,
    paper_table,
    results_table,
    statistics_table,
)

_MARKED = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
STUDY = "study-"


def _statistics(results: Sequence[Result], metric: str, encoding: str) -> TextTable:
    table = collect_scores(results, metric, encoding)
    return statistics_table(
        analyse(table), {method: display_name(method) for method in table.methods}
    )


_FROM_RESULTS: dict[str, Callable[[Sequence[Result], str, str], TextTable]] = {
    "results": lambda results, metric, encoding: results_table(
        collect_scores(results, metric, encoding), collect_scores(results, "mae", encoding)
    ),
    "families": lambda results, metric, encoding: family_table(
        collect_scores(results, metric, encoding)
    ),
    "statistics": _statistics,
    "splits": lambda results, metric, encoding: paired_table(results, metric),
}
_WHOLE: dict[str, Callable[[Sequence[Result]], TextTable]] = {
    "baselines": baseline_table,
    "main": main_table,
    "to-run": to_run_table,
    "missing-studies": missing_studies_table,
}
_FROM_PAPER: dict[str, Callable[[], TextTable]] = {
    "results": paper_table,
    "families": paper_family_table,
    "statistics": lambda: statistics_table(analyse_paper(), {}),
}
LEADERBOARDS = {"leaderboard": OURS, "leaderboard-best": BEST}
# "results-mae" is "results" by the mean absolute error, and so on; studies have their own.
TABLES = (
    *_FROM_RESULTS,
    *(f"{name}-mae" for name in _FROM_RESULTS),
    *LEADERBOARDS,
    "summary",
    *_WHOLE,
)


def make_table(
    name: str,
    results: Sequence[Result],
    encoding: str = "paper",
    unseen: Sequence[Result] = (),
) -> TextTable:
    """One table, by its name.

    Parameters
    ----------
    name : str
        "results", "families", "statistics", "splits", each also with "-mae" behind it,
        "leaderboard", "leaderboard-best", "summary", "baselines", "main", "to-run",
        "missing-studies", or "study-" and the name of a study, with "@preset" behind it if that is
        not the default.
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    encoding : {"paper", "default"}
        Whose arrays the baselines had.
    unseen : sequence of dict
        Runs on datasets that were never used in development, for "summary".

    Returns
    -------
    TextTable

    Raises
    ------
    InvalidOptionError
        If there is no such table.
    """
    study, _, preset = name.removeprefix(STUDY).partition("@")
    if name.startswith(STUDY) and study in STUDIES:
        return _study_table(study, results, preset or "default", encoding)
    if name in LEADERBOARDS:
        return leaderboard_table(results, LEADERBOARDS[name])
    if name in _WHOLE:
        return _WHOLE[name](results)
    if name == "summary":
        return summary_table(results, unseen)
    if name in TABLES:
        kind = name.removesuffix("-mae")
        return _FROM_RESULTS[kind](results, "rmse" if kind == name else "mae", encoding)
    raise InvalidOptionError(
        f"A table must be one of {', '.join(TABLES)}, or {STUDY}NAME for a study; got {name!r}."
    )


def make_paper_table(name: str) -> TextTable:
    """One of the paper's own tables, by its name: "results", "families" or "statistics"."""
    if name not in _FROM_PAPER:
        raise InvalidOptionError(
            f"A table of the paper must be one of {', '.join(_FROM_PAPER)}; got {name!r}."
        )
    return _FROM_PAPER[name]()


def update_tables(text: str, results: Sequence[Result], unseen: Sequence[Result] = ()) -> str:
    """Regenerate the marked tables of a text.

    Parameters
    ----------
    text : str
        Markdown with markers.
    results : sequence of dict
        As from ``tabnsm_bench.store.load_results``.
    unseen : sequence of dict
        Runs on datasets that were never used in development, for "summary".

    Returns
    -------
    str
        The same text if its tables are up to date.

    Raises
    ------
    InvalidDataError
        If the text has no marker, or one that is not closed.
    """
    if text.count("<!-- table: ") != len(_MARKED.findall(text)) or not _MARKED.search(text):
        raise InvalidDataError(
            "The text must have at least 1 table between <!-- table: results --> and "
            "<!-- end -->, each on a line of its own. Add the markers where it belongs."
        )

    def renewed(match: re.Match[str]) -> str:
        opening, name, closing = match.groups()
        return f"{opening}\n{make_table(name, results, unseen=unseen).to_markdown()}\n\n{closing}"

    return _MARKED.sub(renewed, text)


def _study_table(name: str, results: Sequence[Result], preset: str, encoding: str) -> TextTable:
    table = study_table(name, results, preset, encoding=encoding)
    columns = [
        column
        for column in table.columns
        if any(row.get(column.key) not in (None, "") for row in table.rows)
    ]
    return TextTable(
        [column.header for column in columns],
        [[Cell(column.text(row)) for column in columns] for row in table.rows],
        n_names=sum(column.key in ("dataset", "group", "variant", "method") for column in columns),
        notes=[f"{table.title}.", *table.notes],
    )
