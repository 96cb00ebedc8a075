"""``tabnsm bench tune``: search the options of any method on a dataset's validation rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import help_text
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.cli.arguments import (
    DATA_DIR,
    DataDir,
    Encoding,
    MaxEpochs,
    MaxRows,
    Target,
    check_methods,
    dataset_key,
)

if TYPE_CHECKING:
    from tabnsm.tuning import TuningResult
    from tabnsm_bench.protocol import RunSpec

HELP = help_text(
    "Search the options of a method, TabNSM or a baseline, on a dataset's validation rows.",
    """Twenty trials, as in the paper; the test rows are not used. The trials are kept in a
    file: after a crash the same command continues, and in several terminals it shares the work. The
    best options are written as JSON; those of TabNSM are for [bold]tabnsm fit --config[/bold].""",
    """To tune within a run, on each dataset, put +tuned=20 after a method's name in
    [bold]tabnsm bench run[/bold]; it then takes over the trials that this command has made.""",
    examples=(
        "tabnsm bench tune catboost --dataset CP --out best.json -d data",
        "tabnsm bench tune tabnsm-default --dataset CP --out best.json --time-limit 3600",
        "tabnsm bench run --methods catboost+tuned=20,mlp+tuned=20 --datasets CP -d data",
    ),
)


def register(app: typer.Typer) -> None:
    """Add the command.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("tune", help=HELP)(tune)


def tune(
    method: Annotated[
        str, typer.Argument(help="Method; options behind its name are not searched.")
    ],
    dataset: Annotated[str, typer.Option("--dataset", help="Dataset or table file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="JSON file to write the options to.")],
    trials: Annotated[int, typer.Option(help="Trials in all, those of earlier runs included.")] = (
        20
    ),
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds of all trials and two last fits.", metavar="SECONDS"),
    ] = None,
    storage: Annotated[
        Path | None, typer.Option(help="File that keeps the trials; in the cache if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random state of method and search.", min=0)] = 0,
    split: Annotated[int, typer.Option(help="Random state of the split.", min=0)] = 42,
    encoding: Encoding = "paper",
    data_dir: DataDir = DATA_DIR,
    target: Target = None,
    max_rows: MaxRows = None,
    max_epochs: MaxEpochs = None,
    threads: Annotated[int, typer.Option(help="Cores of a trial.", min=1)] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")] = False,
) -> None:
    """Search and save."""
    from tabnsm.files import check_output
    from tabnsm_bench.datasets import load
    from tabnsm_bench.prepare import prepare
    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.tuned import TunedMethod

    check_output(out)
    spec = RunSpec(
        method,
        dataset_key("--dataset", dataset, data_dir, target),
        seed=seed,
        split=split,
        encoding=encoding,
        target=target,
        max_rows=max_rows,
        max_epochs=max_epochs,
        time_limit=time_limit,
    )
    if ":" in spec.method_key:
        raise InvalidOptionError(f"METHOD must be a listed one, got {method!r}.")
    check_methods([spec])
    fixed = spec.method_options
    if max_epochs is not None:
        fixed["max_epochs"] = max_epochs
    tuned = TunedMethod(spec.method_key, fixed, trials, storage, verbose=0 if quiet else 2)
    table = load(spec.dataset, data_dir, target=target)
    data, _, notes = prepare(table, spec, encode=not tuned.takes_frames)
    result = tuned.search(data, seed=seed, time_limit=time_limit, n_threads=threads)
    _write(out, spec, result, tuned.method_options(result))
    if not quiet:
        for note in notes:
            print(f"Note: {note}.")
        _report(spec, result, out)


def _write(out: Path, spec: RunSpec, result: TuningResult, options: dict[str, Any]) -> None:
    """TabNSM's options as its command line reads them; a baseline's with where they are from."""
    from tabnsm.container import atomic_write
    from tabnsm.tuning import write_config

    if spec.method_key.startswith("tabnsm-"):
        write_config(out, result.best_options)
        return
    record = {
        "method": spec.method_key,
        "dataset": spec.dataset,
        "options": options,
        "validation_rmse": result.best_score,
        "n_trials": len(result.trials),
    }
    atomic_write(out, f"{json.dumps(record, indent=2, allow_nan=False)}\n".encode())


def _report(spec: RunSpec, result: TuningResult, out: Path) -> None:
    print(f"Best validation RMSE {result.best_score:.6g} of {len(result.trials)} trials.")
    for name, value in result.best_options.items():
        print(f"  {name} = {value!r}")
    print(f"Saved {out}; the trials are in {result.storage}.")
    if spec.method_key.startswith("tabnsm-"):
        print(f"Now: tabnsm fit --config {out} ...")
    else:
        print(f"Now: tabnsm bench run --methods {spec.method}+tuned={len(result.trials)} ...")
