"""``tabnsm bench study`` and ``studies``: ablations and studies, one command each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import help_text
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.cli.arguments import (
    DATA_DIR,
    FAILED,
    RESULTS_DIR,
    AsJson,
    DataDir,
    Encoding,
    MaxEpochs,
    MaxRows,
    Processes,
    ResultsDir,
    Target,
    Threads,
    TimeLimit,
    check_methods,
    dataset_key,
    numbers,
    split_names,
    table_console,
)
from tabnsm_bench.cli.display import display_runs

if TYPE_CHECKING:
    from tabnsm_bench.studies import Scope, Study, StudyTable

STUDY_HELP = help_text(
    "Run a study and print its table: mean, standard deviation, and change against a reference.",
    """The runs are ordinary results: what another study or [bold]tabnsm bench run[/bold] has
    finished is not run again, and Ctrl-C keeps all that is finished. The table is written as JSON
    and Markdown too. A change is the mean over seeds of each seed's own change.""",
    "[bold]tabnsm bench studies[/bold] lists the names.",
    examples=(
        "tabnsm bench study attention --dataset CP --seeds 0,1,2 -d data",
        "tabnsm bench study seeds --dataset CP --seeds 0-19 -d data",
        "tabnsm bench study samples --dataset AQ --peers catboost,lightgbm -d data",
        "tabnsm bench study threshold --dataset CP --level 3 -d data",
        "tabnsm bench study loss --dataset CP,AQ --metric mae --no-run",
        "tabnsm bench study parameters",
    ),
)
STUDIES_HELP = help_text(
    "List the studies, with the number of runs on one dataset and the paper's counterpart.",
    examples=("tabnsm bench studies", "tabnsm bench studies --json"),
)


def register(app: typer.Typer) -> None:
    """Add the commands.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("study", help=STUDY_HELP)(study)
    app.command("studies", help=STUDIES_HELP)(studies)


def study(
    name: Annotated[str, typer.Argument(help="Name of the study.", metavar="NAME")],
    dataset: Annotated[
        str, typer.Option("--dataset", help="Datasets or table files, with commas between.")
    ] = "",
    seeds: Annotated[
        str | None, typer.Option(help="Seeds, as in 0,1,2 or 0-19; each study has its own.")
    ] = None,
    preset: Annotated[
        str, typer.Option(help="Preset to vary: default, paper or fast.")
    ] = "default",
    peers: Annotated[
        str | None, typer.Option(help="Methods beside TabNSM, in studies that have any.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="What changes are in: rmse, mse, mae, r2, validation_rmse.")
    ] = None,
    level: Annotated[
        list[float] | None,
        typer.Option(help="Validation RMSE to reach, in study threshold; may be repeated."),
    ] = None,
    data_dir: DataDir = DATA_DIR,
    results: ResultsDir = RESULTS_DIR,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the table; that of the results if not given.")
    ] = None,
    encoding: Encoding = "paper",
    target: Target = None,
    max_epochs: MaxEpochs = None,
    max_rows: MaxRows = None,
    time_limit: TimeLimit = None,
    processes: Processes = 1,
    threads: Threads = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run what is missing, or only look.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Run a study and print its table."""
    from tabnsm_bench.studies import Scope, find_study

    chosen = _configured(find_study(name), peers, metric, level)
    datasets = split_names(dataset)
    if not datasets and chosen.rows(preset):
        raise InvalidOptionError(
            f"Study {name!r} needs at least 1 dataset, got none. Add: --dataset"
        )
    wanted = chosen.seeds if seeds is None else tuple(numbers("--seeds", seeds))
    caps = {
        "encoding": encoding,
        "target": target,
        "max_epochs": max_epochs,
        "max_rows": max_rows,
        "time_limit": time_limit,
    }
    keys = tuple(
        dict.fromkeys(dataset_key("--dataset", each, data_dir, target) for each in datasets)
    )
    scope = Scope(keys, wanted, preset, caps, data_dir)
    table, n_failed = _table(chosen, scope, results, processes, threads, run)
    stem = "-".join([name, preset, "+".join(keys)] if keys else [name, preset])
    folder = results / "studies" if out is None else out
    written = table.write(folder, re.sub(r"[^\w.+-]+", "_", stem))
    _show(table, written, as_json)
    if n_failed:
        raise typer.Exit(FAILED)


def studies(as_json: AsJson = False) -> None:
    """List the studies."""
    from tabnsm_bench.studies import STUDIES

    rows: list[dict[str, Any]] = [
        {
            "name": study.name,
            "description": study.description,
            "paper": study.counterpart,
            "seeds": list(study.seeds),
            "n_runs": len(study.specs("dataset", study.seeds)),
            "peers": list(study.peers),
        }
        for study in STUDIES.values()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from rich.table import Table

    table = Table("study", "what it varies", "runs", "in the paper", box=None)
    table.columns[2].justify = "right"
    for row in rows:
        table.add_row(row["name"], row["description"], str(row["n_runs"]), row["paper"])
    table_console().print(table)


def _configured(
    study: Study, peers: str | None, metric: str | None, level: list[float] | None
) -> Study:
    from tabnsm_bench.studies.thresholds import ThresholdStudy

    if peers is not None:
        study = study.against(split_names(peers))
    if metric is not None:
        study = study.judged_by(metric)
    if level:
        if not isinstance(study, ThresholdStudy):
            raise InvalidOptionError(f"--level is for the study threshold, got {study.name!r}.")
        study = study.at(level)
    return study


def _table(
    study: Study,
    scope: Scope,
    results: Path,
    processes: int,
    threads: int | None,
    run: bool,
) -> tuple[StudyTable, int]:
    """The table, and how many runs failed on the way."""
    from rich.console import Console

    from tabnsm_bench.studies.running import run_study, tabulate

    specs = study.all_specs(scope)
    if not (run and specs):
        return tabulate(study, scope, results), 0
    check_methods(specs)
    with display_runs(len(specs), Console(stderr=True, highlight=False)) as progress:
        table = run_study(
            study, scope, results, n_processes=processes, n_threads=threads, display=progress
        )
    return table, sum(ending.state == "failed" for _, ending in progress.failures)


def _show(table: StudyTable, written: tuple[Path, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps(table.to_dict(), indent=2))
        return
    console = table_console()
    console.print(table.title, markup=False, style="bold", soft_wrap=True)
    console.print(table.to_rich())
    for note in table.notes:
        console.print(note, markup=False, soft_wrap=True)
    names = " and ".join(str(path) for path in written)
    console.print(f"Wrote {names}.", markup=False, soft_wrap=True)
