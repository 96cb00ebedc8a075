"""``tabnsm explain``: which columns made each prediction, as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import BatchRows, Model, Quiet, help_text
from tabnsm.cli.display import announce
from tabnsm.cli.predict import _check_batch_rows, _load
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.files import TableFile, TableWriter, open_table
from tabnsm.files.output_path import check_not_read

if TYPE_CHECKING:
    import numpy as np
    from rich.progress import Progress

    from tabnsm.attribution import Explanation, ExplanationSummary
    from tabnsm.estimator import TabNSMRegressor

PREDICTION, BASE = "prediction", "base_value"
EXPLAIN_BATCH_ROWS = 1024
_PICTURES = ("heatmap.png", "heatmap.svg", "importance.png", "importance.svg")
OUTPUTS = ("attributions.csv", "contributions.csv", "columns.csv", *_PICTURES)

HELP = help_text(
    "Show which columns made each prediction, and draw it.",
    """Writes to the folder: [bold]attributions.csv[/bold] (one line per row, one column per input
    column; 1 is the row's strongest), [bold]contributions.csv[/bold] (the same with signs, in the
    target's units; base_value and the contributions add up to the prediction),
    [bold]columns.csv[/bold] (mean share of each column in the
    attribution, and in the foreground that the attention selected), [bold]heatmap[/bold] and
    [bold]importance[/bold] as .png and .svg. Text columns that the model joins share one entry.
    Needs pip install "tabnsm\\[plot]".""",
    examples=(
        "tabnsm explain price.safetensors new.csv --out why",
        "tabnsm explain price.safetensors new.csv -o why --id id --top 15 --rows 40",
        "tabnsm explain robot.safetensors new.csv -o why --target torque1",
    ),
)


def explain(
    model: Model,
    data: Annotated[Path, typer.Argument(help="Table to explain.", metavar="DATA")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; made if need be.")],
    top: Annotated[int, typer.Option(help="Columns that the pictures show by name.")] = 30,
    rows: Annotated[int, typer.Option(help="Rows of the heatmap, drawn at random.")] = 100,
    id: Annotated[
        list[str] | None,
        typer.Option(help="Column to carry over to attributions.csv; may be repeated."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="integrated (adds up) or gradient (the paper's, and faster).")
    ] = "integrated",
    baseline: Annotated[
        str | None, typer.Option(help="Of gradient: zero (the paper's) or average.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Of several targets, the one to explain."),
    ] = None,
    batch_rows: BatchRows = EXPLAIN_BATCH_ROWS,
    quiet: Quiet = False,
) -> None:
    """Explain, write and draw."""
    _check_batch_rows(batch_rows)
    for option, value in (("--top", top), ("--rows", rows)):
        if value < 1:
            raise InvalidOptionError(f"{option} must be >= 1, got {value}.")
    for name in OUTPUTS:
        check_not_read(out / name, {"DATA": data, "MODEL": model}, f"{name} in --out")
    carried = list(dict.fromkeys(id or []))
    file = open_table(data)
    for name in carried:
        file.check_column(name, "--id")
    announce(f"Loading {model.name}", quiet)
    from tabnsm.attribution import ExplanationSummary
    from tabnsm.plotting_attribution import plot_heatmap, plot_importance, require_matplotlib

    _check_method(method, baseline)
    require_matplotlib()
    estimator = _load(model, quiet=True)
    place = _target_place(estimator, target)
    _make_folder(out)

    summary = ExplanationSummary(rows)
    kept = file.batches(batch_rows, carried, as_written=True) if carried else None
    written = [out / "attributions.csv"]
    if method == "integrated":
        written.append(out / "contributions.csv")
    with ExitStack() as stack:
        writers = [stack.enter_context(TableWriter(path)) for path in written]
        progress = stack.enter_context(_progress(quiet))
        task = progress.add_task("rows explained", total=file.n_rows)
        options = {"method": method, "baseline": baseline, "target": place}
        for part in _explanations(estimator, file, carried, batch_rows, options):
            others = None if kept is None else next(kept)
            for writer, table in zip(writers, _tables(part, others), strict=False):
                writer.write(table)
            summary.add(part)
            progress.advance(task, len(part))
    names, shares = summary.columns, summary.importance
    drawn = (summary.sampled_attributions, summary.sampled_predictions)
    written.append(_write_columns(summary, out / "columns.csv"))
    written += plot_heatmap(*drawn, names, shares, out / "heatmap", top=top)
    written += plot_importance(names, shares, summary.n_rows, out / "importance", top=top)
    if not quiet:
        _report(names, shares, written)


def _target_place(estimator: TabNSMRegressor, target: str | None) -> int | None:
    """Which of several targets to explain; None of one target."""
    known = estimator.target_
    if known.n_targets > 1 and target not in known.labels:
        names = ", ".join(map(repr, known.labels))
        raise InvalidOptionError(
            f"--target must name one of the model's targets, {names}, got {target!r}. Explain "
            "each of them into a folder of its own."
        )
    if known.n_targets == 1 and target is not None:
        raise InvalidOptionError(
            f"--target must not be given for a model of one target, got {target!r}."
        )
    return None if target is None else known.labels.index(target)


def _check_method(method: str, baseline: str | None) -> None:
    from tabnsm.attribution import BASELINES, METHODS

    if method not in METHODS:
        raise InvalidOptionError(f"--method must be one of {METHODS}, got {method!r}.")
    if baseline is not None and baseline not in BASELINES:
        raise InvalidOptionError(f"--baseline must be one of {BASELINES}, got {baseline!r}.")
    if method == "integrated" and baseline == "zero":
        raise InvalidOptionError(
            "--baseline zero must come with --method gradient, got --method integrated."
        )


def _progress(quiet: bool) -> Progress:
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def _explanations(
    estimator: TabNSMRegressor,
    file: TableFile,
    not_features: list[str],
    batch_rows: int,
    options: dict[str, Any],
) -> Iterator[Explanation]:
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        columns = [name for name in file.names if name not in not_features]
    else:
        columns = [name for name in known if name in file.names] or file.names
    for table in file.batches(batch_rows, columns):
        yield estimator.explain(table, **options)


def _tables(part: Explanation, carried: Any) -> list[Any]:
    """Attributions, and contributions if they add up, as tables to write."""
    shown = part.attributions.astype("float64").round(6)
    tables = [_lines(part, {PREDICTION: part.predictions}, shown, carried)]
    if part.base_values is not None:
        first = {PREDICTION: part.predictions, BASE: part.base_values}
        tables.append(_lines(part, first, part.contributions, carried))
    return tables


def _lines(
    part: Explanation, first: dict[str, np.ndarray], values: np.ndarray, carried: Any
) -> Any:
    """Carried columns, predictions and values; a name that is taken gets a "_"."""
    import pyarrow as pa

    names = [] if carried is None else list(carried.column_names)
    arrays = [] if carried is None else list(carried.columns)
    for name, column in zip((*first, *part.columns), (*first.values(), *values.T), strict=True):
        while name in names:
            name += "_"
        names.append(name)
        arrays.append(pa.array(column))
    return pa.table(arrays, names=names)


def _write_columns(summary: ExplanationSummary, path: Path) -> Path:
    """The means over all rows, the most important column first."""
    import pyarrow as pa

    order = (-summary.importance).argsort(kind="stable")
    table: dict[str, Any] = {
        "column": [summary.columns[k] for k in order],
        "importance": summary.importance[order],
    }
    if summary.foreground is not None:
        table["foreground"] = summary.foreground[order]
    with TableWriter(path) as writer:
        writer.write(pa.table(table))
    return path


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidDataError(
            f"--out must be a folder, or a path where one can be made, got {str(out)!r} "
            f"({error.strerror})."
        ) from error


def _report(names: tuple[str, ...], shares: np.ndarray, written: list[Path]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False)
    table = Table()
    table.add_column("column")
    table.add_column("share of the attribution", justify="right")
    for k in (-shares).argsort(kind="stable")[:10]:
        table.add_row(escape(names[k]), f"{shares[k]:.1%}")
    console.print(table)
    files = ", ".join(str(path) for path in written)
    console.print(f"Wrote {files}.", markup=False, soft_wrap=True)
