"""``tabnsm bench figures``: the paper's figures, from results or from what it prints."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from tabnsm.cli.arguments import help_text
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.cli.arguments import (
    DATA_DIR,
    RESULTS_DIR,
    DataDir,
    Encoding,
    ResultsDir,
    table_console,
)
from tabnsm_bench.cli.selection import choose_datasets
from tabnsm_bench.cli.statistics import Metric, Names, Ours

HELP = help_text(
    "Draw figures as PNG and SVG, each from whatever results there are.",
    """Without names all are drawn for which there are results; the rest is listed with the
    command that makes them. [bold]--list[/bold] shows the names and the paper's counterparts. The
    heatmap of attributions is drawn by [bold]tabnsm explain[/bold].""",
    examples=(
        "tabnsm bench figures",
        "tabnsm bench figures loss rise --preset paper --out figures",
        "tabnsm bench figures critical-difference average-ranks --metric mae",
        "tabnsm bench figures --paper --out figures/paper",
        "tabnsm bench figures --list",
    ),
)


def register(app: typer.Typer) -> None:
    """Add the command.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("figures", help=HELP)(figures)


def figures(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which figures; all.", metavar="[NAME]...")
    ] = None,
    paper: Annotated[bool, typer.Option("--paper", help="From what the paper prints.")] = False,
    results: ResultsDir = RESULTS_DIR,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path(
        "figures"
    ),
    metric: Metric = "rmse",
    ours: Ours = None,
    datasets: Names = None,
    preset: Annotated[str, typer.Option(help="Preset of TabNSM whose studies to draw.")] = (
        "default"
    ),
    encoding: Encoding = "paper",
    data_dir: DataDir = DATA_DIR,
    list_them: Annotated[bool, typer.Option("--list", help="Show the names.")] = False,
) -> None:
    """Draw figures."""
    from tabnsm_bench.figures import FIGURES, FigureData, find_figure, save_figure
    from tabnsm_bench.scores import collect_scores
    from tabnsm_bench.store import load_results

    if list_them:
        _list()
        return
    kinds = [find_figure(name) for name in names or FIGURES]
    found = [] if paper else load_results(results)
    chosen = None
    if datasets is not None and found:
        # Figures of studies can be drawn where there is no score to rank by.
        with contextlib.suppress(InvalidDataError):
            chosen = choose_datasets(datasets, collect_scores(found, metric, encoding))
    data = FigureData(
        found,
        metric,
        encoding,
        preset,
        ours,
        chosen,
        data_dir if data_dir.is_dir() else None,
    )
    for kind in kinds:
        try:
            if not paper:
                figure = kind.draw(data)
            elif kind.draw_paper is not None:
                figure = kind.draw_paper()
            else:
                raise InvalidDataError("The paper does not print the figures that it is made of.")
        except (InvalidDataError, InvalidOptionError) as error:
            if names:
                raise
            print(f"{kind.name}: not drawn. {error}")
            continue
        png, svg = save_figure(figure, out, kind.name)
        print(f"{kind.name}: {png} and {svg.name}")


def _list() -> None:
    from rich.table import Table

    from tabnsm_bench.figures import FIGURES

    table = Table("figure", "shows", "in the paper", "--paper", box=None)
    for kind in FIGURES.values():
        table.add_row(kind.name, kind.shows, kind.counterpart, "yes" if kind.draw_paper else "")
    table.add_row("", "attributions by row and feature", "attribution heatmap", "tabnsm explain")
    table_console().print(table)
