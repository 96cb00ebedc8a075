"""``tabnsm bench statistics`` and ``tables``: which differences count, and tables of them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabnsm.cli.arguments import help_text
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.cli.arguments import (
    RESULTS_DIR,
    AsJson,
    Encoding,
    ResultsDir,
    table_console,
)
from tabnsm_bench.cli.selection import choose_datasets, choose_names

if TYPE_CHECKING:
    from tabnsm_bench.statistics import Statistics

STATISTICS_HELP = help_text(
    "Average ranks, and the tests of Friedman, Nemenyi and Wilcoxon, over all results.",
    """Scores are averaged over seeds and splits; a missing result has the worst rank. Friedman is
    given without and with the correction for ties, and with Nemenyi counts the methods that have
    every result. Wilcoxon tests one-sidedly on ranks that ours is better, corrected by
    Benjamini-Hochberg. Runs of studies do not count.""",
    examples=(
        "tabnsm bench statistics --paper",
        "tabnsm bench statistics --metric mae --ours tabnsm-paper",
        "tabnsm bench statistics --datasets CP,AQ --json",
    ),
)
TABLES_HELP = help_text(
    "Print a table of the results, best in bold, second underlined, beside the paper's figures.",
    """NAME is results (the default), families (the best of each family), statistics, each also
    with -mae behind it, or study- and the name of a study. With [bold]--into[/bold] a Markdown
    file's tables, between <!-- table: NAME --> and <!-- end -->, are regenerated instead.""",
    examples=(
        "tabnsm bench tables",
        "tabnsm bench tables results-mae --format latex",
        "tabnsm bench tables study-attention@paper",
        "tabnsm bench tables families --paper --format latex",
        "tabnsm bench tables --into README.md",
    ),
)
Metric = Annotated[str, typer.Option(help="Score to rank by: rmse or mae.")]
Ours = Annotated[
    str | None, typer.Option(help="Method that the others are tested against; TabNSM's default.")
]
Names = Annotated[str | None, typer.Option(help="Only these, with commas between.")]


class Format(StrEnum):
    """Ways to write a table."""

    markdown = "markdown"
    latex = "latex"


def register(app: typer.Typer) -> None:
    """Add the commands.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("statistics", help=STATISTICS_HELP)(statistics)
    app.command("tables", help=TABLES_HELP)(tables)


def statistics(
    paper: Annotated[bool, typer.Option("--paper", help="The paper's table instead.")] = False,
    results: ResultsDir = RESULTS_DIR,
    metric: Metric = "rmse",
    ours: Ours = None,
    datasets: Names = None,
    methods: Names = None,
    encoding: Encoding = "paper",
    as_json: AsJson = False,
) -> None:
    """Rank and test."""
    from tabnsm_bench.naming import display_name
    from tabnsm_bench.scores import collect_scores
    from tabnsm_bench.statistics import analyse, analyse_paper
    from tabnsm_bench.store import load_results

    if paper:
        _refuse_with_paper(metric=metric != "rmse", ours=ours, datasets=datasets, methods=methods)
        found, names = analyse_paper(), {}
    else:
        table = collect_scores(load_results(results), metric, encoding)
        table = table.select(
            methods=choose_names(methods, table.methods), datasets=choose_datasets(datasets, table)
        )
        found = analyse(table, ours)
        names = {method: display_name(method) for method in table.methods}
    if as_json:
        print(json.dumps(found.to_dict(), indent=2, allow_nan=False))
    else:
        _show(found, names)


def tables(
    name: Annotated[str, typer.Argument(help="Which table.", metavar="[NAME]")] = "results",
    style: Annotated[
        Format, typer.Option("--format", "-f", help="Markdown or LaTeX (booktabs).")
    ] = Format.markdown,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's own table instead.")] = False,
    results: ResultsDir = RESULTS_DIR,
    encoding: Encoding = "paper",
    into: Annotated[
        Path | None, typer.Option(help="Markdown file whose marked tables are regenerated.")
    ] = None,
) -> None:
    """Print or renew tables."""
    from tabnsm.container import atomic_write
    from tabnsm_bench.marked_tables import make_paper_table, make_table, update_tables
    from tabnsm_bench.store import UNSEEN, load_results

    runs, unseen = ([], []) if paper else (load_results(results), load_results(results / UNSEEN))
    if into is not None:
        old = into.read_text(encoding="utf-8")
        new = update_tables(old, runs, unseen)
        if new != old:
            atomic_write(into, new.encode())
        print(f"{into}: {'tables renewed' if new != old else 'tables were up to date'}.")
        return
    table = make_paper_table(name) if paper else make_table(name, runs, encoding, unseen)
    print(table.to_markdown() if style is Format.markdown else table.to_latex())


def _refuse_with_paper(**options: object) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise InvalidOptionError(
            f"--paper must be given without --{given[0]}: the paper prints one table of RMSE, and "
            "its statistics are those of that table."
        )


def _show(found: Statistics, names: dict[str, str]) -> None:
    from rich.table import Table

    from tabnsm_bench.tables import statistics_table

    text = statistics_table(found, names)
    table = Table(box=None)
    for place, heading in enumerate(text.headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=True)
    for row in text.rows:
        table.add_row(*(cell.text for cell in row))
    console = table_console()
    console.print(table)
    for note in text.notes:
        console.print(note, markup=False)
