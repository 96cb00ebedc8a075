"""``tabnsm report``: one page that shows a model and the rows it is tried on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import Model, Quiet, help_text
from tabnsm.cli.predict import _load, _places
from tabnsm.cli.targets import target_columns
from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile, check_output, open_table
from tabnsm.files.output_path import check_not_read

if TYPE_CHECKING:
    from tabnsm.estimator import TabNSMRegressor

HELP = help_text(
    "Write a page that shows a model, the rows of a table, and what it made of them.",
    """One file that loads nothing from elsewhere: the data as understood and how it differs from
    training, training curves, predictions against true values, residuals, calibration,
    importances, rows with their contributions, and a comparison with ridge regression, boosting
    and the mean. Of more than --max-rows rows, a sample is used. A model of several targets gets
    one page with a choice between them.""",
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
            "--target",
            "-t",
            help="Column with the true values, or several with commas between; if not given, the "
            "targets of the model by name, or the one column that is no feature.",
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
    check_output(out)
    file = open_table(data)
    if target is not None:
        target_columns(file, target)  # complain before the model is read
    estimator = _load(model, quiet)
    names = _true_columns(estimator, file, target)
    X, y = _rows(estimator, file, names)
    others: dict[str, Any] = {}
    if train is not None:
        training = open_table(train)
        for column in names:
            training.check_column(column, "--target")
        others["X_train"], others["y_train"] = _rows(estimator, training, names)
    if not quiet:
        _say(f"Predicting, explaining and comparing {min(X.num_rows, max_rows):,} rows ...")
    name = names[0] if estimator.target_.n_targets == 1 else None
    estimator.report(X, y, out, target_name=name, max_rows=max_rows, **others)
    if not quiet:
        _say(f"Wrote {out}.")


def _true_columns(estimator: TabNSMRegressor, file: TableFile, target: str | None) -> list[str]:
    """Columns with the true values: those that are named, or those that the model implies."""
    if target is not None:
        names = target_columns(file, target)
        _places(estimator, names)  # complain before rows are read
        return names
    known = estimator.target_.names
    if known is not None:
        for name in known:
            file.check_column(name, "--target")
        return list(known)
    features = getattr(estimator, "feature_names_in_", None)
    further = [] if features is None else [name for name in file.names if name not in set(features)]
    n_targets = estimator.target_.n_targets
    if len(further) != n_targets:
        found = ", ".join(map(repr, further[:5])) or "none"
        raise InvalidOptionError(
            "--target must name the column(s) with the true values where the model does not know "
            f"exactly {n_targets} column(s) of the table, got {found}."
        )
    return further


def _rows(estimator: TabNSMRegressor, file: TableFile, targets: list[str]) -> tuple[Any, Any]:
    known = getattr(estimator, "feature_names_in_", None)
    features = file.names if known is None else [name for name in known if name in file.names]
    features = [name for name in features if name not in targets]
    table = file.read(list(dict.fromkeys([*features, *targets])))
    is_one = estimator.target_.n_targets == 1
    return table.select(features), table.column(targets[0]) if is_one else table.select(targets)


def _say(text: str) -> None:
    from rich.console import Console

    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
