"""``tabnsm predict`` and ``tabnsm evaluate``: a model file meets a table file."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import AsJson, BatchRows, Model, Quiet, help_text
from tabnsm.cli.display import announce, mean_metrics, print_metrics, print_target_metrics
from tabnsm.cli.intervals import (
    Outputs,
    check_interval,
    predict_and_score,
    split_levels,
)
from tabnsm.cli.targets import chosen_targets, split_names, target_columns
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.files import TableFile, TableWriter, open_table
from tabnsm.files.output_path import check_not_read
from tabnsm.files.table_file import BATCH_ROWS

if TYPE_CHECKING:
    from rich.progress import Progress

    from tabnsm.estimator import TabNSMRegressor

LOG_SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""

PREDICT_HELP = help_text(
    "Predict the rows of a table, also of one that is larger than memory.",
    """Rows are read, predicted and written in batches, in their order; the output appears when
    it is whole. Columns are found by name; the target and others may be there and are ignored. A
    model of several targets writes a column for each, such as prediction_price. Intervals are the
    columns lower and upper, quantiles columns such as quantile_0.1.""",
    examples=(
        "tabnsm predict price.safetensors new.csv --out predictions.csv",
        "tabnsm predict price.safetensors new.csv --interval 0.9 -o p.csv",
        "tabnsm predict price.safetensors new.csv --quantiles 0.1,0.5,0.9 -o p.csv",
        "tabnsm predict price.safetensors new.csv -o p.parquet --id id --id shop",
        "tabnsm predict robot.safetensors new.csv --target torque1,torque3 -o p.csv",
        "tabnsm predict price.safetensors new.csv | head",
    ),
)

EVALUATE_HELP = help_text(
    "Compare predictions with the true values of a table.",
    """Shows RMSE, MAE, R2, Spearman's rank correlation, and the share of rows whose prediction
    is within one of 20 equal bins between the least and the greatest true value; and the share of
    true values inside intervals, with their mean width. Rows without a target are left out.
    Several targets have a column each, and their means.""",
    examples=(
        "tabnsm evaluate price.safetensors test.csv --target price",
        "tabnsm evaluate price.safetensors test.csv --target price --json",
        "tabnsm evaluate robot.safetensors test.csv",
    ),
)

Chosen = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Of several targets, only these: a,b,c."),
]


def predict(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table to predict.", metavar="DATA")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .csv, .tsv, .jsonl, .parquet or .feather; none or - prints CSV.",
        ),
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry over to the output; may be repeated."),
    ] = None,
    target: Chosen = None,
    interval: Annotated[
        float | None,
        typer.Option(help="Confidence level, such as 0.9, of the columns lower and upper."),
    ] = None,
    quantiles: Annotated[
        str | None, typer.Option(help="Levels of quantiles, with commas between: 0.1,0.5,0.9.")
    ] = None,
    batch_rows: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict and write."""
    import pyarrow as pa

    _check_batch_rows(batch_rows)
    check_interval(interval)
    wanted = Outputs(interval, () if quantiles is None else split_levels(quantiles))
    path = None if out in (None, "-") else out
    if path is not None:
        check_not_read(path, {"DATA": data, "MODEL": model})
    carried = list(dict.fromkeys(id or []))
    file = open_table(data)
    for name in carried:
        file.check_column(name, "--id")
    writer = TableWriter(path)
    estimator = _load(model, quiet)
    known = estimator.target_
    places = chosen_targets(known, None if target is None else split_names(target, known.labels))
    outputs = wanted.names(known, places)
    for name in carried:
        if name in outputs:
            raise InvalidOptionError(f"--id must not be {name!r}, the output's own column.")
    # Carried cells are read once more, because they go out as they came in.
    kept = file.batches(batch_rows, carried, as_written=True, allow_empty=True) if carried else None
    with writer, _progress(quiet) as progress:
        for table in _feature_batches(estimator, file, carried, batch_rows, progress, quiet):
            columns = wanted.columns(estimator, table, places)
            if kept is None:
                writer.write(pa.table(columns, names=outputs))
            else:
                batch = next(kept).columns
                writer.write(pa.table([*batch, *columns], names=[*carried, *outputs]))


def evaluate(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table with the true values.", metavar="DATA")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="Column with the true values, or several with commas between; not needed for a "
            "model of several targets.",
        ),
    ] = None,
    as_json: AsJson = False,
    batch_rows: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict and compare."""
    import numpy as np

    _check_batch_rows(batch_rows)
    file = open_table(data)
    if target is not None:
        target_columns(file, target)  # complain before the model is read
    estimator = _load(model, quiet or as_json)
    names = _true_columns(estimator, file, target)
    places = _places(estimator, names)

    from tabnsm.cli.columns import number_values
    from tabnsm.metrics import regression_metrics, target_metrics

    table = file.read(names)
    truth = np.stack([number_values(table, name, "--target") for name in names], axis=1)
    del table
    missing = np.isnan(truth).all(axis=1)
    if missing.all():
        shown_names = ", ".join(map(repr, names))
        raise InvalidDataError(f"--target must have values, but {shown_names} has none in {data}.")
    hidden = quiet or as_json
    with _progress(hidden) as progress:
        batches = _feature_batches(estimator, file, names, batch_rows, progress, hidden)
        prediction, intervals = predict_and_score(estimator, batches, truth, places)
    shown: dict[str, Any] = {
        "n_rows": int((~missing).sum()),
        "n_without_target": int(missing.sum()),
    }
    if len(names) == 1:
        shown |= regression_metrics(truth[~missing, 0], prediction[~missing, 0])
        shown["intervals"] = intervals[0].result()
    else:
        shown["targets"] = target_metrics(truth, prediction, names=names)
        shown["mean"] = mean_metrics(shown["targets"])
        for k, name in enumerate(names):
            if name in shown["targets"]:
                shown["targets"][name]["intervals"] = intervals[k].result()
    if as_json:
        print(json.dumps(shown, indent=2))
    elif len(names) == 1:
        print_metrics(shown)
    else:
        print_target_metrics(shown)


def _true_columns(estimator: TabNSMRegressor, file: TableFile, target: str | None) -> list[str]:
    """Columns with the true values, of ``--target`` or of the model."""
    if target is not None:
        return target_columns(file, target)
    known = estimator.target_
    if known.names is None:
        raise InvalidOptionError(
            "--target must name the column(s) with the true values, got none. The model does not "
            f"know the name(s) of its {known.n_targets} target(s)."
        )
    for name in known.names:
        file.check_column(name, "--target")
    return list(known.names)


def _places(estimator: TabNSMRegressor, names: list[str]) -> list[int]:
    """Which of the model's targets the columns hold."""
    known = estimator.target_
    if known.n_targets > 1 and known.names is not None:
        return chosen_targets(known, names)
    if len(names) != known.n_targets:
        raise InvalidOptionError(
            f"--target must name as many columns as the model has targets ({known.n_targets}), "
            f"got {len(names)}."
        )
    return list(range(known.n_targets))


def _feature_batches(
    estimator: TabNSMRegressor,
    file: TableFile,
    not_features: list[str],
    batch_rows: int,
    progress: Progress,
    quiet: bool,
) -> Iterator[Any]:
    """The file batch by batch, with the columns that the model knows."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        # Fitted on an array: columns are taken in order, but for those with another purpose.
        columns = [name for name in file.names if name not in not_features]
    else:
        # With none of them in the file, all go to the encoder, which says what is missing.
        columns = [name for name in known if name in file.names] or file.names
    task = progress.add_task("rows", total=file.n_rows)
    n_done, shown = 0, time.monotonic()
    for table in file.batches(batch_rows, columns, allow_empty=True):
        yield table
        progress.advance(task, table.num_rows)
        n_done += table.num_rows
        # The bar is for a terminal; a log has a line now and then.
        if progress.disable and not quiet and time.monotonic() - shown > LOG_SECONDS:
            shown = time.monotonic()
            total = "" if file.n_rows is None else f" of {file.n_rows:,}"
            print(f"Predicting: {n_done:,}{total} rows", file=sys.stderr, flush=True)


def _load(path: Path, quiet: bool) -> TabNSMRegressor:
    announce(f"Loading {path.name}", quiet)
    from tabnsm.estimator import TabNSMRegressor

    return TabNSMRegressor.load(path)


def _progress(quiet: bool) -> Progress:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("predicting"),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
    )


def _check_batch_rows(batch_rows: int) -> None:
    if batch_rows < 1:
        raise InvalidOptionError(f"--batch-rows must be >= 1, got {batch_rows}.")
