"""``tabnsm bench run``: methods on datasets, one JSON file per run."""

from __future__ import annotations

import itertools
import sys
from contextlib import ExitStack
from typing import Annotated, Any

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
    other_target,
    require_names,
)
from tabnsm_bench.cli.display import display_runs
from tabnsm_bench.cli.selection import expand_methods

HELP = help_text(
    "Run methods on datasets by the paper's protocol, each run in a separate process.",
    """The rows are split 72/8/20 as in the paper; all that is fitted is fitted on the training
    rows. Finished runs are skipped, failed ones tried once more, and several such commands, here
    or on other machines with the same folder, share the work. Ctrl-C keeps all that is
    finished.""",
    """[bold]tabnsm bench baselines[/bold] lists the methods. Options go behind the name, as in
    tabnsm-default+attention=full+max_boost=1; catboost+tuned=20 searches its options in 20 trials
    on the validation rows first. [bold]all[/bold] is every method that can run here,
    [bold]family:tree[/bold] those of a family. package.module:factory is a method of your own:
    see tabnsm_bench.protocol.Method.""",
    examples=(
        "tabnsm bench run --methods tabnsm-paper --datasets CP --seeds 0,1,2 -d data",
        "tabnsm bench run --methods ridge,lightgbm --datasets CP,AQ -d data --processes 2",
        "tabnsm bench run --methods family:tree --datasets CP -d data",
        "tabnsm bench run --methods ridge --datasets sales --target price -d tables",
        "tabnsm bench run -m ridge,knn-5 --datasets CP -d data --processes 16 --ray-address auto",
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
    methods: Annotated[
        str,
        typer.Option("--methods", "-m", help="Methods, family:NAME or all, with commas between."),
    ],
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
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="Run on a Ray cluster, auto or host:port; --processes is the runs at a time.",
            metavar="HOST",
        ),
    ] = None,
) -> None:
    """Run methods on datasets."""
    from rich.console import Console

    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.run import run_many

    names = [
        dataset_key("--datasets", name, data_dir, target)
        for name in require_names("--datasets", datasets)
    ]
    chosen, left_out = expand_methods("--methods", methods)
    every = (
        RunSpec(
            method,
            name,
            seed=seed,
            split=split,
            encoding=encoding,
            target=other_target(name, data_dir, target),
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
            chosen,
        )
    )
    specs = list(dict.fromkeys(every))  # what is named twice is one run
    check_methods(specs)
    for sentence in left_out:
        print(sentence, file=sys.stderr)
    how: dict[str, Any] = {"n_processes": processes, "n_threads": threads}
    with ExitStack() as stack:
        if ray_address is not None:
            from tabnsm.distributed.cluster import cluster
            from tabnsm_bench.cluster import supervise_on_cluster

            how |= {"n_threads": threads or 1, "supervise": supervise_on_cluster}
            stack.enter_context(cluster(ray_address, processes, how["n_threads"], 0))
        table = stack.enter_context(display_runs(len(specs), Console(highlight=False)))
        run_many(specs, data_dir, results, display=table, **how)
    if any(ending.state == "failed" for _, ending in table.failures):
        raise typer.Exit(FAILED)
