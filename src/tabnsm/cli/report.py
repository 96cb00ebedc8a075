"""``tabnsm report``: one page that shows a model and the rows it is tried on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabnsm.cli.arguments import Model, Quiet, help_text
from tabnsm.cli.predict import _load
from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile, open_table
from tabnsm.files.output_path import check_not_read

HELP = help_text(
    "Write a page that shows a model, the rows of a table, and what it made of them.",
    """One file that loads nothing from elsewhere: the data as understood and how it differs from
    training, training curves, predictions against true values, residuals, calibration,
    importances, rows with their contributions, and a comparison with ridge regression, boosting
    and the mean. Of more than --max-rows rows, a sample is used.""",
    examples=(
        "tabnsm report price.safetensors new.csv --out report.html",
        "tabnsm report price.safetensors new.csv -o report.html --target price --train old.csv",
    ),
)


def report(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table with the true values.", metavar="DATA")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Page to write, such as report.html.")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="Column with the true values; the one that is no feature."
        ),
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Table to train the compared methods on; else DATA, cross-validated."),
    ] = None,
    max_rows: Annotated[int, typer.Option(help="Rows that are used at most.")] = 10_000,
    quiet: Quiet = False,
) -> None:
    """Try, compare and write."""
    if max_rows < 2:
        raise InvalidOptionError(f"--max-rows must be >= 2, got {max_rows}.")
    read = {"DATA": data, "MODEL": model} | ({} if train is None else {"--train": train})
    check_not_read(out, read)
    file = open_table(data)
    if target is not None:
        file.check_column(target, "--target")
    estimator = _load(model)
    known = getattr(estimator, "feature_names_in_", None)
    name = target if target is not None else _find_target(file, known)
    X, y = _rows(file, name, known)
    others: dict[str, Any] = {}
    if train is not None:
        training = open_table(train)
        training.check_column(name, "--target")
        others["X_train"], others["y_train"] = _rows(training, name, known)
    if not quiet:
        _say(f"Predicting, explaining and comparing {min(X.num_rows, max_rows):,} rows ...")
    estimator.report(X, y, out, target_name=name, max_rows=max_rows, **others)
    if not quiet:
        _say(f"Wrote {out}.")


def _find_target(file: TableFile, known: Any) -> str:
    """The one column that the model does not know."""
    further = [] if known is None else [name for name in file.names if name not in set(known)]
    if len(further) != 1:
        found = ", ".join(map(repr, further[:5])) or "none"
        raise InvalidOptionError(
            "--target must name the column with the true values where it is not the only one "
            f"that the model does not know, got {found}."
        )
    return further[0]


def _rows(file: TableFile, target: str, known: Any) -> tuple[Any, Any]:
    features = file.names if known is None else [name for name in known if name in file.names]
    features = [name for name in features if name != target]
    table = file.read(list(dict.fromkeys([*features, target])))
    return table.select(features), table.column(target)


def _say(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
