"""``tabnsm predict`` and ``tabnsm evaluate``: a model file meets a table file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import AsJson, BatchRows, Model, Quiet, help_text
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.files import TableFile, TableWriter, open_table
from tabnsm.files.output_path import check_not_read
from tabnsm.files.table_file import BATCH_ROWS

if TYPE_CHECKING:
    from rich.progress import Progress

    from tabnsm.estimator import TabNSMRegressor

COLUMN = "prediction"

PREDICT_HELP = help_text(
    "Predict the rows of a table, also of one that is larger than memory.",
    """Rows are read, predicted and written in batches, in their order; the output appears when
    it is whole. Columns are found by name; the target and others may be there and are ignored.""",
    examples=(
        "tabnsm predict price.safetensors new.csv --out predictions.csv",
        "tabnsm predict price.safetensors new.csv -o p.parquet --id id --id shop",
        "tabnsm predict price.safetensors new.csv | head",
    ),
)

EVALUATE_HELP = help_text(
    "Compare predictions with the true values of a table.",
    """Shows RMSE, MAE, R2, Spearman's rank correlation, and the share of rows whose prediction
    is within one of 20 equal bins between the least and the greatest true value. Rows without a
    target are left out.""",
    examples=(
        "tabnsm evaluate price.safetensors test.csv --target price",
        "tabnsm evaluate price.safetensors test.csv --target price --json",
    ),
)


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
    batch_rows: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict and write."""
    import pyarrow as pa

    _check_batch_rows(batch_rows)
    path = None if out in (None, "-") else out
    if path is not None:
        check_not_read(path, {"DATA": data, "MODEL": model})
    carried = list(dict.fromkeys(id or []))
    file = open_table(data)
    for name in carried:
        file.check_column(name, "--id")
        if name == COLUMN:
            raise InvalidOptionError(f"--id must not be {COLUMN!r}, the output's own column.")
    writer = TableWriter(path)
    estimator = _load(model)
    # Carried cells are read once more, because they go out as they came in.
    kept = file.batches(batch_rows, carried, as_written=True, allow_empty=True) if carried else None
    with writer, _progress(quiet) as progress:
        for prediction in _predictions(estimator, file, carried, batch_rows, progress):
            rows = pa.table({COLUMN: prediction})
            if kept is not None:
                columns = next(kept)
                rows = pa.table([*columns.columns, *rows.columns], names=[*carried, COLUMN])
            writer.write(rows)


def evaluate(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table with the true values.", metavar="DATA")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column with the true values.")],
    as_json: AsJson = False,
    batch_rows: BatchRows = BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Predict and compare."""
    import numpy as np

    _check_batch_rows(batch_rows)
    file = open_table(data)
    file.check_column(target, "--target")
    estimator = _load(model)

    from tabnsm.cli.columns import number_values
    from tabnsm.metrics import regression_metrics

    truth = number_values(file.read([target]), target, "--target")
    missing = np.isnan(truth)
    if missing.all():
        raise InvalidDataError(f"--target must have values, but {target!r} has none in {data}.")
    with _progress(quiet or as_json) as progress:
        parts = _predictions(estimator, file, [target], batch_rows, progress)
        prediction = np.concatenate(list(parts))
    metrics = regression_metrics(truth[~missing], prediction[~missing])
    shown = {"n_rows": int((~missing).sum()), "n_without_target": int(missing.sum()), **metrics}
    if as_json:
        print(json.dumps(shown, indent=2))
    else:
        _print_metrics(shown)


def _predictions(
    estimator: TabNSMRegressor,
    file: TableFile,
    not_features: list[str],
    batch_rows: int,
    progress: Progress,
) -> Iterator[Any]:
    """Predictions batch by batch, with the columns that the model knows."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        # Fitted on an array: columns are taken in order, but for those with another purpose.
        columns = [name for name in file.names if name not in not_features]
    else:
        # With none of them in the file, all go to the encoder, which says what is missing.
        columns = [name for name in known if name in file.names] or file.names
    task = progress.add_task("rows", total=file.n_rows)
    for table in file.batches(batch_rows, columns, allow_empty=True):
        yield estimator.predict(table)
        progress.advance(task, table.num_rows)


def _load(path: Path) -> TabNSMRegressor:
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


def _print_metrics(shown: dict[str, float]) -> None:
    from rich.console import Console
    from rich.table import Table

    names = {
        "n_rows": "rows",
        "n_without_target": "rows without a target, left out",
        "rmse": "RMSE",
        "mse": "MSE",
        "mae": "MAE",
        "r2": "R2",
        "spearman": "Spearman",
        "within_one_bin": "within one of 20 bins",
    }
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for key, name in names.items():
        value = shown[key]
        as_text = f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
        table.add_row(name, f"{value:.1%}" if key == "within_one_bin" else as_text)
    Console().print(table)


def _check_batch_rows(batch_rows: int) -> None:
    if batch_rows < 1:
        raise InvalidOptionError(f"--batch-rows must be >= 1, got {batch_rows}.")
