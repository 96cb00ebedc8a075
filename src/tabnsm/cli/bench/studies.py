"""``tabnsm bench study`` and ``studies``: ablations and studies, one command each."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.bench.datasets import DATA_DIR, DataDir
from tabnsm.cli.teaching import help_text
from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from tabnsm.bench.studies import Scope, Study, StudyTable

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
FAILED, INTERRUPTED = 1, 130
LOG_WIDTH = 200


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
    results: Annotated[Path, typer.Option("--results", "-r", help="Folder of results.")] = Path(
        "results"
    ),
    out: Annotated[
        Path | None, typer.Option(help="Folder for the table; that of the results if not given.")
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="Preset that encodes tables for baselines: paper or default.")
    ] = "paper",
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to predict, if not described.")
    ] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Most passes over the rows.")] = None,
    max_rows: Annotated[int | None, typer.Option(help="Most rows of a table.")] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds to fit before it is ended.", metavar="SECONDS")
    ] = None,
    processes: Annotated[int, typer.Option("--processes", "-p", help="Runs at a time.")] = 1,
    threads: Annotated[
        int | None, typer.Option(help="Cores per run; all are shared if not given.")
    ] = None,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run what is missing, or only look.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a study and print its table."""
    from tabnsm.bench.studies import Scope, find_study

    chosen = _configured(find_study(name), peers, metric, level)
    datasets = _words(dataset)
    if not datasets and chosen.rows(preset):
        raise InvalidOptionError(
            f"Study {name!r} needs at least 1 dataset, got none. Add: --dataset"
        )
    wanted = chosen.seeds if seeds is None else _seeds(seeds)
    caps = {
        "encoding": encoding,
        "target": target,
        "max_epochs": max_epochs,
        "max_rows": max_rows,
        "time_limit": time_limit,
    }
    keys = tuple(dict.fromkeys(_key(name, data_dir, target) for name in datasets))
    scope = Scope(keys, wanted, preset, caps, data_dir)
    table, n_failed = _table(chosen, scope, results, processes, threads, run)
    stem = "-".join([name, preset, "+".join(keys)] if keys else [name, preset])
    folder = results / "studies" if out is None else out
    written = table.write(folder, re.sub(r"[^\w.+-]+", "_", stem))
    _show(table, written, as_json)
    if n_failed:
        raise typer.Exit(FAILED)


def studies(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the studies."""
    from tabnsm.bench.studies import STUDIES

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
    from rich.console import Console
    from rich.table import Table

    table = Table("study", "what it varies", "runs", "in the paper", box=None)
    table.columns[2].justify = "right"
    for row in rows:
        table.add_row(row["name"], row["description"], str(row["n_runs"]), row["paper"])
    Console(highlight=False).print(table)


def _configured(
    study: Study, peers: str | None, metric: str | None, level: list[float] | None
) -> Study:
    from tabnsm.bench.studies.thresholds import ThresholdStudy

    if peers is not None:
        study = study.against(_words(peers))
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

    from tabnsm.bench.progress import RunTable
    from tabnsm.bench.studies.running import run_study, tabulate

    specs = study.all_specs(scope)
    if not (run and specs):
        return tabulate(study, scope, results), 0
    _check_methods({spec.method_key for spec in specs})
    progress = RunTable(len(specs), Console(stderr=True, highlight=False))
    try:
        with progress:
            table = run_study(
                study, scope, results, n_processes=processes, n_threads=threads, display=progress
            )
    except KeyboardInterrupt:
        progress.console.print(
            f"Interrupted. {progress.summary()}. The same command goes on from here."
        )
        raise SystemExit(INTERRUPTED) from None
    progress.console.print(progress.summary())
    return table, sum(ending.state == "failed" for _, ending in progress.failures)


def _show(table: StudyTable, written: tuple[Path, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps(table.to_dict(), indent=2))
        return
    from rich.console import Console

    # A log has no edge that a table would have to be squeezed into.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else LOG_WIDTH)
    console.print(table.title, markup=False, style="bold", soft_wrap=True)
    console.print(table.to_rich())
    for note in table.notes:
        console.print(note, markup=False, soft_wrap=True)
    names = " and ".join(str(path) for path in written)
    console.print(f"Wrote {names}.", markup=False, soft_wrap=True)


def _check_methods(keys: set[str]) -> None:
    """Complain of a name that no run could use, before any run begins."""
    from difflib import get_close_matches

    from tabnsm.bench.baselines.catalog import BASELINES

    for key in sorted(keys):
        if ":" in key or key.startswith("tabnsm-") or key in BASELINES:
            continue
        close = get_close_matches(key, BASELINES, n=1)
        remedy = f"Did you mean {close[0]!r}?" if close else "Run: tabnsm bench baselines"
        raise InvalidOptionError(f"There is no method {key!r}. {remedy}")


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _seeds(text: str) -> tuple[int, ...]:
    """Numbers and ranges: "0,1,2" or "0-19"."""
    found: list[int] = []
    for word in _words(text):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if match is None:
            found = []
            break
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1)
    if not found:
        raise InvalidOptionError(f"--seeds must look like 0,1,2 or 0-19, got {text!r}.")
    return tuple(dict.fromkeys(found))


def _key(name: str, data_dir: Path, target: str | None) -> str:
    """Key of a dataset whose file is there, before any run begins."""
    from tabnsm.bench.datasets.loading import find

    descriptor, path = find(name, data_dir)
    if path.parent.resolve() != data_dir.resolve():
        raise InvalidOptionError(
            f"--dataset must name files in --data-dir, got {name}. Add: --data-dir {path.parent}"
        )
    if not (target or descriptor.target):
        raise InvalidOptionError(f"{path} has no description, so --target must be given.")
    return descriptor.key
