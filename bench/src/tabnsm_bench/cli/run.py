"""``tabnsm bench run``: methods on datasets, one JSON file per run."""

from __future__ import annotations

import itertools
from typing import Annotated

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli.arguments import (
    DATA_DIR,
    FAILED,
    RESULTS_DIR,
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
    require_names,
)
from tabnsm_bench.cli.display import display_runs

HELP = help_text(
    "Run methods on datasets by the paper's protocol, each run in a separate process.",
    """The rows are split 72/8/20 as in the paper; all that is fitted is fitted on the training
    rows. Finished runs are skipped, failed ones tried once more, and several such commands, here
    or on other machines with the same folder, share the work. Ctrl-C keeps all that is
    finished.""",
    """[bold]tabnsm bench baselines[/bold] lists the methods. Options go behind the name, as in
    tabnsm-default+attention=full+max_boost=1; catboost+tuned=20 searches its options in 20 trials
    on the validation rows first. package.module:factory is a method of your own:
    see tabnsm_bench.protocol.Method.""",
    examples=(
        "tabnsm bench run --methods tabnsm-paper --datasets CP --seeds 0,1,2 -d data",
        "tabnsm bench run --methods ridge,lightgbm --datasets CP,AQ -d data --processes 2",
        "tabnsm bench run --methods ridge --datasets sales --target price -d tables",
    ),
)


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
    seeds: Annotated[str, typer.Option(help="Random states of the methods: 0,1,2 or 0-19.")] = "0",
    splits: Annotated[str, typer.Option(help="Random states of the splits.")] = "42",
    encoding: Encoding = "paper",
    data_dir: DataDir = DATA_DIR,
    results: ResultsDir = RESULTS_DIR,
    processes: Processes = 1,
    threads: Threads = None,
    target: Target = None,
    time_limit: TimeLimit = None,
    max_rows: MaxRows = None,
    max_epochs: MaxEpochs = None,
    feature_fraction: Annotated[float, typer.Option(help="Share of the columns to keep.")] = 1.0,
    sample_fraction: Annotated[
        float, typer.Option(help="Share of the training rows to keep.")
    ] = 1.0,
) -> None:
    """Run methods on datasets."""
    from rich.console import Console

    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.run import run_many

    names = [
        dataset_key("--datasets", name, data_dir, target)
        for name in require_names("--datasets", datasets)
    ]
    every = (
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
            numbers("--splits", splits),
            numbers("--seeds", seeds),
            require_names("--methods", methods),
        )
    )
    specs = list(dict.fromkeys(every))  # what is named twice is one run
    check_methods(specs)
    with display_runs(len(specs), Console(highlight=False)) as table:
        run_many(
            specs,
            data_dir,
            results,
            n_processes=processes,
            n_threads=threads,
            display=table,
        )
    if any(ending.state == "failed" for _, ending in table.failures):
        raise typer.Exit(FAILED)
