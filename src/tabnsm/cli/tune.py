"""``tabnsm tune``: from a table file to the options that validate best."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabnsm.cli import arguments
from tabnsm.cli.arguments import column_kinds, help_text, left_out, progress_level, read_rows
from tabnsm.cli.display import announce
from tabnsm.cli.targets import target_columns
from tabnsm.errors import InvalidOptionError
from tabnsm.files import check_output, open_table
from tabnsm.files.output_path import MODEL_ENDING, check_not_read, has_table_ending

if TYPE_CHECKING:
    from tabnsm.tuning import TuningResult

HELP = help_text(
    "Search options that validate better, and save them.",
    """Trains one model per trial on the same rows and scores it on the same validation rows; do
    not give it your test rows. Trials that fall behind are stopped early. Each step is kept in the
    storage: after a crash the same command goes on where it stopped, and the same command in
    several terminals shares the work, or on several machines if the storage is a database. Ctrl-C
    saves the best so far. Needs pip install "tabnsm\\[tune]", and "tabnsm\\[postgres]" for
    PostgreSQL or "tabnsm\\[mysql]" for MySQL and MariaDB.""",
    examples=(
        "tabnsm tune sales.csv --target price --out best.json",
        "tabnsm tune sales.csv -t price -o best.json --trials 50 --time-limit 3600",
        "tabnsm tune sales.csv -t price -o best.json --storage study.journal",
        "tabnsm tune sales.csv -t price -o best.json --storage postgresql://me@db/study",
        "tabnsm fit sales.csv -t price --config best.json -o price.safetensors",
    ),
)


def tune(
    data: arguments.Data,
    target: arguments.Target,
    out: Annotated[Path, typer.Option("--out", "-o", help="JSON file to write the options to.")],
    trials: Annotated[
        int, typer.Option(help="Trials in all, those of earlier runs included.")
    ] = 20,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds of this run.", metavar="SECONDS")
    ] = None,
    trial_time_limit: Annotated[
        float | None, typer.Option(help="Seconds of one trial; not saved.", metavar="SECONDS")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="File or database URL that keeps the trials; beside --out, with .journal, if not "
            "given.",
            metavar="FILE|URL",
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="What to start from: default, best, paper or fast.")
    ] = "default",
    drop: arguments.Drop = None,
    kind: arguments.Kind = None,
    weight: arguments.Weight = None,
    validation: arguments.Validation = None,
    validation_fraction: arguments.ValidationFraction = 0.1,
    group: arguments.Group = None,
    time: arguments.Time = None,
    epochs: Annotated[
        int | None, typer.Option(help="Most passes over the rows in a trial; not saved.")
    ] = None,
    eval_metric: Annotated[
        str, typer.Option(help="What validation watches and trials are scored by: rmse or mae.")
    ] = "rmse",
    seed: Annotated[int, typer.Option(help="Same number, same trials.", min=0, max=2**32 - 1)] = 0,
    text_encoder: arguments.TextEncoder = "minilm",
    text_columns: arguments.TextColumns = None,
    text_precision: arguments.TextPrecision = "float32",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="A line per trial.")] = False,
    quiet: arguments.Quiet = False,
) -> None:
    """Search and save."""
    kept = str(out.with_suffix(".journal")) if storage is None else storage
    _check_files(out, kept, {"DATA": data, "--validation": validation})
    if trials < 1:
        raise InvalidOptionError(f"--trials must be >= 1, got {trials}.")
    level = progress_level(verbose, quiet)
    file = open_table(data)
    targets = target_columns(file, target)
    no_features = [*left_out(file, targets, drop or [], weight, group, time), *targets]
    validation_file = None if validation is None else open_table(validation)
    options = {
        "column_kinds": column_kinds(file, kind or [], no_features),
        "max_epochs": epochs,
        "eval_metric": None if eval_metric == "rmse" else eval_metric,
        "time_limit": trial_time_limit,
        "text_encoder": None if text_encoder == "minilm" else text_encoder,
        "text_columns": text_columns,
        "text_precision": None if text_precision == "float32" else text_precision,
        "validation_fraction": None if validation_fraction == 0.1 else validation_fraction,
    }
    features = [name for name in file.names if name not in no_features]
    if not features:
        raise InvalidOptionError("At least 1 column must be left to learn from, got none.")

    announce(f"Reading {data.name}", quiet)
    from tabnsm.tuning import tune as search_options
    from tabnsm.tuning import write_config

    result = search_options(
        **read_rows(file, features, targets, weight, group, time, validation_file),
        preset=preset,
        options={name: value for name, value in options.items() if value is not None},
        n_trials=trials,
        time_limit=time_limit,
        storage=kept,
        random_state=seed,
        verbose=level,
    )
    write_config(out, result.best_options)
    if not quiet:
        _report(result, out, eval_metric.upper())


def _check_files(out: Path, storage: str, inputs: dict[str, Path | None]) -> None:
    """Refuse to write over what is read, and over files of another kind."""
    check_output(out)
    written: dict[str, Path | None] = {}
    if "://" not in storage:
        check_not_read(Path(storage), inputs, "--storage")
        written = {"--storage": Path(storage), "the lock of --storage": Path(f"{storage}.lock")}
    check_not_read(out, inputs | written)
    if has_table_ending(out) or out.suffix.lower() == MODEL_ENDING:
        raise InvalidOptionError(
            f"--out must be a JSON file of options, got {out}, which is the name of a table or a "
            "model. Choose a name that ends in .json."
        )


def _report(result: TuningResult, out: Path, metric: str) -> None:
    from collections import Counter

    from rich.console import Console

    console = Console(highlight=False)
    states = Counter(trial.state for trial in result.trials)
    shown = ", ".join(f"{count} {state}" for state, count in states.most_common())
    console.print(
        f"Best validation {metric} {result.best_score:.6g} of {len(result.trials)} trials "
        f"({shown}); {_STOPPED[result.stopped]}.",
        soft_wrap=True,
    )
    for name, value in result.best_options.items():
        console.print(f"  {name} = {value!r}", markup=False, soft_wrap=True)
    console.print(
        f"Saved {out}; the trials are in {result.storage}. Now: tabnsm fit --config {out} ...",
        markup=False,
        soft_wrap=True,
    )


_STOPPED = {
    "trials": "all trials are done or taken",
    "time": "the time is up",
    "interrupted": "interrupted, the same command goes on",
}
