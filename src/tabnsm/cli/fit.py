"""``tabnsm fit``: from a table file to a model file."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli import arguments
from tabnsm.cli.arguments import (
    column_kinds,
    fits_into_memory,
    help_text,
    is_columnar,
    left_out,
    name_rows,
    progress_level,
    read_rows,
)
from tabnsm.cli.display import announce
from tabnsm.cli.targets import target_columns
from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile, open_table
from tabnsm.files.output_path import check_model_output, check_not_read, is_same_file

if TYPE_CHECKING:
    from tabnsm.estimator import TabNSMRegressor

HELP = help_text(
    "Train a model on a table and save it.",
    """Kinds of columns are found by themselves; [bold]--kind[/bold] overrules them. A tenth of
    the rows is held out to find the best epoch, unless you say which rows to validate on. Ctrl-C
    stops training early and saves the best model so far.""",
    examples=(
        "tabnsm fit sales.csv --target price --out price.safetensors",
        "tabnsm fit sales.csv -t price -o m.safetensors --drop id --kind zip=category",
        "tabnsm fit sales.parquet -t price -o m.safetensors --time sold_on",
        "tabnsm fit robot.csv -t torque1,torque2,torque3 -o m.safetensors",
        "tabnsm fit train.csv -t y -o m.safetensors --validation valid.csv",
        "tabnsm fit big.csv -t y -o m.safetensors --checkpoint-dir run --resume",
        "tabnsm fit folder/ -t y -o m.safetensors --work-dir /data/tmp",
        "tabnsm fit sales.csv -t price -o m.safetensors --config best.json",
        "tabnsm fit data/ -t y -o m.safetensors --workers 8 --ray-address auto",
    ),
)


def fit(
    context: typer.Context,
    data: arguments.Data,
    target: arguments.Target,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    preset: Annotated[
        str,
        typer.Option(
            help="default, best (with trees), paper (its equations) or fast (less accurate)."
        ),
    ] = "default",
    config: Annotated[
        Path | None,
        typer.Option(help="JSON file of options, as tabnsm tune writes; the command line wins."),
    ] = None,
    drop: arguments.Drop = None,
    kind: arguments.Kind = None,
    weight: arguments.Weight = None,
    validation: arguments.Validation = None,
    validation_fraction: arguments.ValidationFraction = 0.1,
    group: arguments.Group = None,
    time: arguments.Time = None,
    epochs: Annotated[int | None, typer.Option(help="Most passes over the rows.")] = None,
    eval_metric: Annotated[
        str, typer.Option(help="What validation watches: rmse or mae.")
    ] = "rmse",
    time_limit: Annotated[
        float | None,
        typer.Option(help="Seconds of the fit, reading the file not included.", metavar="SECONDS"),
    ] = None,
    checkpoint_dir: Annotated[
        Path | None, typer.Option(help="Folder that keeps the run's state after every epoch.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in --checkpoint-dir, if any.")
    ] = False,
    work_dir: Annotated[
        Path | None,
        typer.Option(help="Place for the encoded rows of data that is larger than memory."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="CSV file with a line per epoch, while training goes on.")
    ] = None,
    jobs: arguments.Jobs = None,
    workers: Annotated[
        int | None, typer.Option(help="Train on so many workers of a Ray cluster.", min=1)
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="auto or host:port of the cluster; else one is started.", metavar="ADDRESS"
        ),
    ] = None,
    storage_path: Annotated[
        str | None,
        typer.Option(help="Folder or URI that all machines share.", metavar="PATH|URI"),
    ] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Each worker has a GPU of its own.")] = False,
    seed: Annotated[int, typer.Option(help="Same number, same model.", min=0, max=2**32 - 1)] = 0,
    text_encoder: arguments.TextEncoder = "minilm",
    text_columns: arguments.TextColumns = None,
    text_precision: arguments.TextPrecision = "float32",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="A line per epoch, and the columns.")
    ] = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Train and save."""
    inputs = {"DATA": data, "--validation": validation, "--config": config}
    check_not_read(out, inputs)
    check_model_output(out)
    if log is not None:
        check_not_read(log, inputs | {"--out": out}, "--log")
    if checkpoint_dir is not None:
        _check_checkpoints(out, checkpoint_dir)
    file = _open_data(data, work_dir)
    targets = target_columns(file, target)
    no_features = [*left_out(file, targets, drop or [], weight, group, time), *targets]
    validation_file = None if validation is None else open_table(validation)
    level = progress_level(verbose, quiet)
    announce(f"Reading {data.name}", quiet)

    from tabnsm.callbacks import CSVLog
    from tabnsm.estimator import TabNSMRegressor
    from tabnsm.options import resolve_options

    callbacks = None if log is None else [CSVLog(log, append=resume)]
    options = {
        "preset": preset,
        "column_kinds": column_kinds(file, kind or [], no_features),
        "validation_fraction": validation_fraction,
        "max_epochs": epochs,
        "eval_metric": eval_metric,
        "time_limit": time_limit,
        "checkpoint_dir": checkpoint_dir,
        "text_encoder": text_encoder,
        "text_columns": text_columns,
        "text_precision": text_precision,
        "n_jobs": jobs,
        "random_state": seed,
        "verbose": level,
    }
    if config is not None:
        options = _with_config(context, config, options)
    model = TabNSMRegressor(**options)  # type: ignore[arg-type]
    resolve_options(model.get_params(deep=False))  # complain before the file is read
    features = [name for name in file.names if name not in no_features]
    if not features:
        raise InvalidOptionError("At least 1 column must be left to learn from, got none.")
    columns = (file, features, targets, weight, group, time, validation_file)
    streams = is_columnar(file) and (bool(work_dir or workers) or not fits_into_memory(file))
    rows = name_rows(*columns) if streams else read_rows(*columns)
    with _cluster(model, workers, ray_address, storage_path, gpu, work_dir):
        model.fit(**rows, resume=resume, work_dir=work_dir, callbacks=callbacks)
    with _without_ctrl_c():
        model.save(out)
        if not quiet:
            _report(model, out, verbose)


def _cluster(
    model: TabNSMRegressor,
    workers: int | None,
    address: str | None,
    storage_path: str | None,
    gpu: bool,
    work_dir: Path | None,
) -> AbstractContextManager[None]:
    """Where the networks are trained: on workers of a cluster, if there are to be some."""
    if workers is None:
        given = {"--ray-address": address, "--storage-path": storage_path, "--gpu": gpu or None}
        for option, value in given.items():
            if value is not None:
                raise InvalidOptionError(f"{option} needs --workers, got {value} alone.")
        return nullcontext()
    from tabnsm.distributed.fit import on_cluster

    return on_cluster(workers, gpu, 1, "auto", storage_path, address, model, work_dir)


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ignore Ctrl-C: whoever pressed it to keep the model must not lose it by pressing twice."""
    if threading.current_thread() is not threading.main_thread():  # only there can it be ignored
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_checkpoints(out: Path, folder: Path) -> None:
    """A model must not replace what --resume reads."""
    if out.name.startswith("checkpoint") and is_same_file(out.parent, folder):
        raise InvalidOptionError(
            f"--out must not be named like a checkpoint in --checkpoint-dir, got {out}. "
            "Choose another name."
        )


def _open_data(data: Path, work_dir: Path | None) -> TableFile:
    """The table; with a work folder one of which columns can be read by themselves."""
    file = open_table(data)
    if work_dir is not None and not is_columnar(file):
        raise InvalidOptionError(
            f"--work-dir is for Parquet and Arrow files, got {data}, which is read into memory. "
            "Write the table as Parquet, or leave out --work-dir."
        )
    return file


def _with_config(context: typer.Context, config: Path, options: dict[str, Any]) -> dict[str, Any]:
    """The config's options, under those that were given on the command line."""
    from tabnsm.tuning.config_file import read_config

    chosen = read_config(config)
    flags = {"max_epochs": "epochs", "random_state": "seed", "column_kinds": "kind"}
    flags["n_jobs"] = "jobs"
    for name, value in options.items():
        if name == "column_kinds" and value and chosen.get(name):
            chosen[name] |= value
        elif name not in chosen or name == "verbose" or _is_given(context, flags.get(name, name)):
            chosen[name] = value
    return chosen


def _is_given(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _report(model: TabNSMRegressor, out: Path, verbose: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    columns = model.describe_columns()
    if verbose:
        console.print(columns)
    kinds = Counter(row.kind for row in columns)
    console.print(
        f"Columns: {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}, "
        f"as {model.encoder_.n_features} features."
    )
    if len(model.histories_) == 1:
        trained = f"Best of {model.n_iter_} epochs: {model.history_.best_epoch}, with a"
    else:
        trained = f"{len(model.histories_)} networks, together with a"
    if model.blend_ is not None:
        shares = ", ".join(f"{name} {w:.0%}" for name, w in model.blend_.weights.items())
        console.print(f"Blend: {shares}.", soft_wrap=True)
        trained = "All members together have a"
    metric = model.options_.training.eval_metric.upper()
    if model.target_.n_targets > 1:
        metric = f"mean {metric}, in standard deviations of the {model.target_.n_targets} targets,"
    console.print(
        f"{trained} validation {metric} of {model.best_score_:.6g} "
        f"(stopped: {model.histories_[-1].stop_reason}).",
        soft_wrap=True,
    )
    size = out.stat().st_size / 1e6
    console.print(f"Saved {out} ({size:.1f} MB).", markup=False, soft_wrap=True)
