"""``tabnsm bench run``: methods on datasets, one JSON file per run."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabnsm.cli.bench.datasets import DATA_DIR, DataDir
from tabnsm.cli.teaching import help_text
from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from tabnsm.bench.protocol import RunSpec

HELP = help_text(
    "Run methods on datasets by the paper's protocol, each run in a process of its own.",
    """The rows are split 72/8/20 as in the paper; all that is fitted is fitted on the training
    rows. Finished runs are skipped, failed ones tried once more, and several such commands, here
    or on other machines with the same folder, share the work. Ctrl-C keeps all that is
    finished.""",
    """[bold]tabnsm bench baselines[/bold] lists the methods. Options go behind the name, as in
    tabnsm-default+attention=full+max_boost=1. package.module:factory is a method of your own:
    see tabnsm.bench.protocol.Method.""",
    examples=(
        "tabnsm bench run --methods tabnsm-paper --datasets CP --seeds 0,1,2 -d data",
        "tabnsm bench run --methods ridge,lightgbm --datasets CP,AQ -d data --processes 2",
        "tabnsm bench run --methods ridge --datasets sales --target price -d tables",
    ),
)
FAILED, INTERRUPTED = 1, 130


def register(app: typer.Typer) -> None:
    """Add the command.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("run", help=HELP)(run)


def run(
    methods: Annotated[str, typer.Option("--methods", "-m", help="Methods, with commas between.")],
    datasets: Annotated[
        str, typer.Option("--datasets", help="Datasets or table files, with commas between.")
    ],
    seeds: Annotated[str, typer.Option(help="Random states of the methods.")] = "0",
    splits: Annotated[str, typer.Option(help="Random states of the splits.")] = "42",
    encoding: Annotated[
        str, typer.Option(help="Preset that encodes tables for baselines: paper or default.")
    ] = "paper",
    data_dir: DataDir = DATA_DIR,
    results: Annotated[Path, typer.Option("--results", "-r", help="Folder of results.")] = Path(
        "results"
    ),
    processes: Annotated[int, typer.Option("--processes", "-p", help="Runs at a time.")] = 1,
    threads: Annotated[
        int | None, typer.Option(help="Cores per run; all are shared if not given.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Column to predict, if not described.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds to fit before it is ended.", metavar="SECONDS")
    ] = None,
    max_rows: Annotated[int | None, typer.Option(help="Most rows of a table.")] = None,
    max_epochs: Annotated[int | None, typer.Option(help="Most passes over the rows.")] = None,
    feature_fraction: Annotated[float, typer.Option(help="Share of the columns to keep.")] = 1.0,
    sample_fraction: Annotated[
        float, typer.Option(help="Share of the training rows to keep.")
    ] = 1.0,
) -> None:
    """Run methods on datasets."""
    from rich.console import Console

    from tabnsm.bench.progress import RunTable
    from tabnsm.bench.protocol import RunSpec
    from tabnsm.bench.run import run_many

    names = [_dataset(name, data_dir, target) for name in _words("--datasets", datasets)]
    specs = [
        RunSpec(
            method,
            name,
            seed=seed,
            split=split,
            encoding=encoding,
            target=target,
            time_limit=time_limit,
            max_rows=max_rows,
            max_epochs=max_epochs,
            feature_fraction=feature_fraction,
            sample_fraction=sample_fraction,
        )
        for name, split, seed, method in itertools.product(
            names,
            _numbers("--splits", splits),
            _numbers("--seeds", seeds),
            _words("--methods", methods),
        )
    ]
    _check_methods(specs)
    console = Console(highlight=False)
    table = RunTable(len(specs), console)
    try:
        with table:
            run_many(
                specs,
                data_dir,
                results,
                n_processes=processes,
                n_threads=threads,
                display=table,
            )
    except KeyboardInterrupt:
        print(f"Interrupted. {table.summary()}. The same command goes on from here.")
        raise SystemExit(INTERRUPTED) from None
    print(table.summary())
    if any(ending.state == "failed" for _, ending in table.failures):
        raise typer.Exit(FAILED)


def _words(option: str, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InvalidOptionError(f"{option} must name at least 1, got {text!r}.")
    return list(dict.fromkeys(words))


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(word) for word in _words(option, text)]
    except ValueError as error:
        raise InvalidOptionError(
            f"{option} must be whole numbers with commas between, got {text!r}."
        ) from error


def _dataset(name: str, data_dir: Path, target: str | None) -> str:
    """Key of a dataset whose file is there, before any run begins."""
    from tabnsm.bench.datasets.loading import find

    descriptor, path = find(name, data_dir)
    if path.parent.resolve() != data_dir.resolve():
        raise InvalidOptionError(
            f"--datasets must name files in --data-dir, got {name}. Add: --data-dir {path.parent}"
        )
    if not (target or descriptor.target):
        raise InvalidOptionError(f"{path} has no description, so --target must be given.")
    return descriptor.key


def _check_methods(specs: list[RunSpec]) -> None:
    """Complain of what no run could use, before any run begins."""
    from tabnsm.bench.baselines.catalog import TABNSM_METHODS, find
    from tabnsm.bench.execute import make_method

    for spec in {spec.method: spec for spec in specs}.values():
        if ":" in spec.method_key:
            continue
        info = None if spec.method_key in TABNSM_METHODS else find(spec.method_key)
        if info is not None and info.reason:
            raise InvalidOptionError(f"{info.name} cannot run here. {info.reason}")
        # One with an environment starts a process there, only to be told of a wrong option.
        if info is None or not info.environment:
            make_method(spec)
