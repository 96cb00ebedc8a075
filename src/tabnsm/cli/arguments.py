"""Arguments and help of the commands, and what those that train read of a table file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile

Data = Annotated[
    Path,
    typer.Argument(
        help="Table to train on: a file, or a folder or 'pattern' of Parquet or Arrow files.",
        metavar="DATA",
    ),
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", help="Column to predict; several with commas between: a,b,c."),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out; may be repeated.")]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help="Kind of a column: numeric, category, text, date; may be repeated.",
        metavar="COL=KIND",
    ),
]
Weight = Annotated[str | None, typer.Option(help="Column with a weight per row; no feature.")]
Validation = Annotated[
    Path | None, typer.Option(help="Table to validate on, instead of held-out rows.")
]
ValidationFraction = Annotated[float, typer.Option(help="Share of the rows that is held out.")]
Group = Annotated[
    str | None, typer.Option(help="Hold out whole groups by this column; no feature.")
]
Time = Annotated[
    str | None, typer.Option(help="Hold out the latest rows by this column; stays a feature.")
]
TextEncoder = Annotated[
    str,
    typer.Option(help="minilm, a folder, or a sentence-transformers model on this machine."),
]
TextColumns = Annotated[
    str | None,
    typer.Option(help="Embed text columns separate, or joined into one string per row."),
]
TextPrecision = Annotated[str, typer.Option(help="float32, or int8: faster, and rounds.")]
Jobs = Annotated[
    int | None,
    typer.Option(help="Networks to train side by side; 1 is none, -1 is one per core."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")]
Model = Annotated[Path, typer.Argument(help="Model file.", metavar="MODEL")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BatchRows = Annotated[
    int, typer.Option(help="Rows at a time; fewer need less memory.", metavar="ROWS")
]

# Bytes of memory that a fit may need for a byte of a compressed file.
_MEMORY_PER_BYTE = 20


def help_text(*paragraphs: str, examples: tuple[str, ...] = ()) -> str:
    r"""Put a help text together.

    Examples
    --------
    >>> help_text("Show a model.", examples=("tabnsm info m.safetensors",))
    'Show a model.\n\n\x08\nExamples\n  tabnsm info m.safetensors'
    """
    parts = [" ".join(paragraph.split()) for paragraph in paragraphs]
    if examples:
        parts.append("\n".join(["\b", "Examples", *(f"  {example}" for example in examples)]))
    return "\n\n".join(parts)


def left_out(
    file: TableFile,
    targets: list[str],
    drop: list[str],
    weight: str | None,
    group: str | None,
    time: str | None,
) -> list[str]:
    """Columns that are no features, after a check of all names."""
    named = [("--drop", name) for name in drop]
    optional = {"--weight": weight, "--group": group, "--time": time}
    named += [(option, name) for option, name in optional.items() if name is not None]
    for option, name in named:
        file.check_column(name, option)
        if name in targets:
            raise InvalidOptionError(
                f"{option} must not name the target, got {name!r}. Name another column."
            )
    return [*drop, *(name for name in (weight, group) if name is not None)]


def column_kinds(file: TableFile, kinds: list[str], taken: list[str]) -> dict[str, str] | None:
    """Kinds by column, of entries like COL=KIND."""
    chosen = {}
    for entry in kinds:
        name, separator, kind = entry.rpartition("=")
        if not separator:
            raise InvalidOptionError(f"--kind must look like COL=KIND, got {entry!r}.")
        file.check_column(name, "--kind")
        if name in taken:
            raise InvalidOptionError(f"--kind must name a feature, but {name!r} is none.")
        chosen[name] = kind
    return chosen or None


def progress_level(verbose: bool, quiet: bool) -> int:
    """Level of detail on the screen: a bar needs a terminal, a log gets lines."""
    if verbose and quiet:
        raise InvalidOptionError("--verbose and --quiet cannot both be given.")
    return 0 if quiet else 2 if verbose or not sys.stderr.isatty() else 1


def read_rows(
    file: TableFile,
    features: list[str],
    targets: list[str],
    weight: str | None,
    group: str | None,
    time: str | None,
    validation: TableFile | None,
) -> dict[str, Any]:
    """Read the columns that training needs; arguments of `TabNSMRegressor.fit`."""
    from tabnsm.cli.columns import group_values, number_values, time_values

    others = [name for name in (*targets, weight, group, time) if name is not None]
    table = file.read(list(dict.fromkeys([*features, *others])))
    rows: dict[str, Any] = {"X": table.select(features), "y": _target_of(table, targets)}
    if weight is not None:
        rows["sample_weight"] = number_values(table, weight, "--weight")
    if validation is not None:
        held_out = validation.read([*features, *targets])
        rows |= {"X_val": held_out.select(features), "y_val": _target_of(held_out, targets)}
    if group is not None:
        rows["validation_groups"] = group_values(table, group)
    if time is not None:
        rows["validation_time"] = time_values(table, time)
    return rows


def name_rows(
    file: TableFile,
    features: list[str],
    targets: list[str],
    weight: str | None,
    group: str | None,
    time: str | None,
    validation: TableFile | None,
) -> dict[str, Any]:
    """The same as `read_rows`, for a dataset: its columns by name, which the fit reads."""
    from tabnsm.tables import Table

    table = Table.from_native(file.path)
    used = {*features, *targets, weight, group, time}
    rows: dict[str, Any] = {
        "X": table.without([name for name in table.names if name not in used]),
        "y": targets[0] if len(targets) == 1 else targets,
        "sample_weight": weight,
        "validation_groups": group,
        "validation_time": time,
    }
    if validation is not None and is_columnar(validation):
        rows |= {"X_val": Table.from_native(validation.path), "y_val": rows["y"]}
    elif validation is not None:
        held_out = validation.read([*features, *targets])
        rows |= {"X_val": held_out.select(features), "y_val": _target_of(held_out, targets)}
    return rows


def is_columnar(file: TableFile) -> bool:
    """Whether a column can be read by itself."""
    from tabnsm.files.columnar import ArrowFile, ParquetFile
    from tabnsm.files.dataset_file import DatasetFile

    return isinstance(file, (ArrowFile, DatasetFile, ParquetFile))


def fits_into_memory(file: TableFile) -> bool:
    """Whether a file is small enough to be read whole; a folder never counts as that."""
    from tabnsm.files.dataset_file import DatasetFile
    from tabnsm.training.memory import physical_memory

    if isinstance(file, DatasetFile):
        return False
    memory = physical_memory()
    return memory is None or _MEMORY_PER_BYTE * file.path.stat().st_size < memory


def _target_of(table: Any, targets: list[str]) -> Any:
    return table.column(targets[0]) if len(targets) == 1 else table.select(targets)
