"""``tabnsm distill``, ``refit`` and ``convert``: a model file from another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli import arguments
from tabnsm.cli.arguments import Model, Quiet, help_text, left_out, progress_level, read_rows
from tabnsm.cli.predict import _load
from tabnsm.cli.targets import target_columns
from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile, open_table
from tabnsm.files.output_path import check_model_output, check_not_read

if TYPE_CHECKING:
    from tabnsm.estimator import TabNSMRegressor

DISTILL_HELP = help_text(
    "Train one small network to predict what a model predicts.",
    """The student is an ordinary model file, a fraction of the size and many times as fast. It
    learns from the model's predictions for the rows of a table, best those of the fit, and for
    rows that are mixed from them; true values are not needed.""",
    examples=(
        "tabnsm distill price.safetensors sales.csv --out small.safetensors",
        "tabnsm distill price.safetensors sales.csv -o small.safetensors --dtype bfloat16",
        "tabnsm distill price.safetensors sales.csv -o small.safetensors --time-limit 60",
    ),
)
REFIT_HELP = help_text(
    "Go on with new rows, from the weights of a model.",
    """DATA has rows that the model was not fitted on. New categories, wider ranges and new columns
    get room; a column that is absent counts as missing. Rows of the fit are not needed: the model
    keeps some. With [bold]--old[/bold] others are trained on in their place; none validates.""",
    examples=(
        "tabnsm refit price.safetensors may.csv --target price --out newer.safetensors",
        "tabnsm refit price.safetensors may.csv -t price -o newer.safetensors --time sold_on",
        "tabnsm refit price.safetensors may.csv -t price -o newer.safetensors --old april.csv",
    ),
)
CONVERT_HELP = help_text(
    "Store the weights of a model with fewer bits, or without rows of its fit.",
    """bfloat16 takes half of the space and int8 about a quarter; both round. With
    [bold]--data[/bold] the largest change of a prediction is reported.""",
    examples=(
        "tabnsm convert price.safetensors --no-rows --out shared.safetensors",
        "tabnsm convert price.safetensors --dtype bfloat16 --out small.safetensors",
        "tabnsm convert price.safetensors --dtype int8 -o small.safetensors --data new.csv",
    ),
)
Out = Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")]
Dtype = Annotated[str, typer.Option(help="Of the stored weights: float32, bfloat16 or int8.")]
Seconds = Annotated[float | None, typer.Option(help="Most seconds of training.", metavar="SECONDS")]
Epochs = Annotated[int | None, typer.Option(help="Most passes over the rows.")]


def distill(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table of rows to learn from.", metavar="DATA")],
    out: Out,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="True values, to validate by them.")
    ] = None,
    time_limit: Seconds = None,
    epochs: Epochs = None,
    dtype: Dtype = "float32",
    quiet: Quiet = False,
) -> None:
    """Train a student and save it."""
    _check(out, dtype, {"MODEL": model, "DATA": data})
    file = open_table(data)
    targets = [] if target is None else target_columns(file, target)
    estimator = _load(model, quiet).set_params(verbose=progress_level(False, quiet))
    rows = file.read([*(names := _known_columns(estimator, file, targets)), *targets])
    truth: Any = None
    if targets:
        truth = rows.column(targets[0]) if len(targets) == 1 else rows.select(targets)
    student = estimator.distill(rows.select(names), truth, time_limit=time_limit, max_epochs=epochs)
    student.save(out, dtype=dtype)
    if not quiet:
        of = "the true values" if targets else "the model's predictions"
        _say(f"Validation RMSE against {of}: {student.validation_rmse_:.6g}.")
        _say_sizes(model, out)


def refit(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table of new rows.", metavar="DATA")],
    target: arguments.Target,
    out: Out,
    old: Annotated[
        Path | None, typer.Option(help="Rows of the fit; trained on, but not validated on.")
    ] = None,
    drop: arguments.Drop = None,
    weight: arguments.Weight = None,
    validation: arguments.Validation = None,
    validation_fraction: arguments.ValidationFraction = 0.1,
    group: arguments.Group = None,
    time: arguments.Time = None,
    time_limit: Seconds = None,
    epochs: Epochs = None,
    jobs: arguments.Jobs = None,
    dtype: Dtype = "float32",
    quiet: Quiet = False,
) -> None:
    """Train further and save."""
    _check(out, dtype, {"MODEL": model, "DATA": data, "--old": old, "--validation": validation})
    file = open_table(data)
    targets = target_columns(file, target)
    no_features = [*left_out(file, targets, drop or [], weight, group, time), *targets]
    others = {"--validation": validation, "--old": old}
    files = {name: None if path is None else open_table(path) for name, path in others.items()}
    estimator = _load(model, quiet)
    options: dict[str, Any] = {"time_limit": time_limit, "n_jobs": jobs}
    options |= {"validation_fraction": validation_fraction}
    options |= {} if epochs is None else {"max_epochs": epochs}
    estimator.set_params(**options, verbose=progress_level(False, quiet))
    features = [name for name in file.names if name not in no_features]
    rows = read_rows(file, features, targets, weight, group, time, files["--validation"])
    if (earlier := files["--old"]) is not None:
        known = _known_columns(estimator, earlier, no_features)
        rows["X_old"], rows["y_old"] = read_rows(
            earlier, known, targets, None, None, None, None
        ).values()
    estimator.refit(**rows)
    estimator.save(out, dtype=dtype)  # type: ignore[arg-type]
    if not quiet:
        _say(f"Validation RMSE: {estimator.validation_rmse_:.6g}.")
        _say_sizes(model, out)


def convert(
    model: Model,
    out: Out,
    dtype: Annotated[
        str | None,
        typer.Option(help="Of the stored weights: float32, bfloat16 or int8; else as in MODEL."),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Rows whose predictions are compared.")] = None,
    no_rows: Annotated[
        bool, typer.Option("--no-rows", help="Leave out the rows of the fit that refit needs.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Store a model in another precision, or without rows."""
    from tabnsm.container import read_container

    _check(out, dtype or "float32", {"MODEL": model, "--data": data})
    file = None if data is None else open_table(data)
    estimator = _load(model, quiet)
    dtype = dtype or read_container(model)[1].get("weights_dtype", "float32")
    rows = None if file is None else file.read(_known_columns(estimator, file, []))
    before = None if rows is None else estimator.predict(rows)
    estimator.save(out, dtype=dtype, keep_rows=not no_rows)  # type: ignore[arg-type]
    if quiet:
        return
    _say_sizes(model, out)
    if before is not None:
        import numpy as np

        after = _load(out, True).predict(rows)
        deviation = np.std(before, axis=0)
        change = np.abs(after - before) / np.where(deviation > 0, deviation, 1.0)
        _say(
            f"Predictions of {len(before):,} rows change by at most {change.max():.2g} of their "
            f"standard deviation, by {np.sqrt(np.mean(change**2)):.2g} in the root mean square."
        )


def _check(out: Path, dtype: str, inputs: dict[str, Path | None]) -> None:
    """Refuse, before any work, outputs that replace an input and unknown precisions."""
    from tabnsm.precision import check_dtype

    check_not_read(out, inputs)
    check_model_output(out)
    check_dtype(dtype)


def _known_columns(
    estimator: TabNSMRegressor, file: TableFile, no_features: list[str]
) -> list[str]:
    """The columns of a file that the model knows; all, where it knows no names."""
    known = getattr(estimator, "feature_names_in_", None)
    names = [name for name in file.names if name not in no_features]
    names = names if known is None else [name for name in known if name in names]
    if not names:
        such = "" if known is None else f", such as {known[0]!r}"
        raise InvalidOptionError(f"The table must have columns of the model{such}, got none.")
    return names


def _say_sizes(before: Path, after: Path) -> None:
    earlier, size = (path.stat().st_size / 1e6 for path in (before, after))
    _say(f"Saved {after} ({size:.2f} MB; {before} has {earlier:.2f} MB).")


def _say(text: str) -> None:
    from rich.console import Console

    Console(highlight=False).print(text, markup=False, soft_wrap=True)
