"""``tabnsm bench datasets`` and ``download``: which tables there are, and how to get them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli.arguments import DATA_DIR, DataDir, table_console

if TYPE_CHECKING:
    from tabnsm_bench.datasets import Descriptor

DATASETS_HELP = help_text(
    "List the datasets: the paper's nine, and those of the data folder.",
    """A table file with a sidecar NAME.json (name, target, drop) describes itself; any other CSV
    or Parquet file in the folder is a dataset too, once --target is given to
    [bold]tabnsm bench run[/bold].""",
    examples=(
        "tabnsm bench datasets --data-dir data",
        "tabnsm bench datasets --data-dir data --json",
    ),
)
DOWNLOAD_HELP = help_text(
    "Download datasets into the data folder.",
    """What was cut off is continued; a file appears only when it is whole and its checksum is
    right. SC is not public: its keeper, NACC, hands it out on request.""",
    examples=("tabnsm bench download CP AQ --data-dir data",),
)


def register(app: typer.Typer) -> None:
    """Add the commands.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("datasets", help=DATASETS_HELP)(datasets)
    app.command("download", help=DOWNLOAD_HELP)(download)


def datasets(
    data_dir: DataDir = DATA_DIR,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with all details.")] = False,
) -> None:
    """List the datasets."""
    from tabnsm_bench.datasets import all_descriptors

    rows = [_facts(known, data_dir) for known in all_descriptors(data_dir).values()]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


def download(
    names: Annotated[list[str], typer.Argument(help="Keys or abbreviations.", metavar="NAME...")],
    data_dir: DataDir = DATA_DIR,
) -> None:
    """Download datasets."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from tabnsm_bench.datasets import download_dataset, find_descriptor

    console = Console(highlight=False, stderr=True)
    keys = [find_descriptor(name, data_dir).key for name in names]
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    for key in keys:
        with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
            task = bar.add_task(key, total=None)

            def show(done: int, total: int | None, bar: Any = bar, task: Any = task) -> None:
                bar.update(task, completed=done, total=total)

            path = download_dataset(key, data_dir, on_progress=show)
        print(f"{key}: {path}")


def _facts(known: Descriptor, data_dir: Path) -> dict[str, Any]:
    from tabnsm_bench.datasets import find_file, how_to_get

    path = find_file(known.key, data_dir)
    state = "missing" if path is None else "part" if known.is_part else "found"
    return {
        "key": known.key,
        "paper": known.paper,
        "title": known.title,
        "target": known.target,
        "rows": known.rows,
        "features": known.features,
        "state": state,
        "file": None if path is None else str(path),
        "how_to_get": how_to_get(known) if path is None else "",
        "sources": [source.page for source in known.sources],
        "drop": list(known.drop),
        "licence": known.licence,
        "leaks": known.leaks,
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("dataset", "paper", "rows", "features", "target", "state", "to get it", box=None)
    # Names and commands are there to be copied: they are folded and not cut.
    for any_column in table.columns:
        any_column.overflow = "fold"
    for column in (2, 3):
        table.columns[column].justify = "right"
    for row in rows:
        rows_text = "" if row["rows"] is None else f"{row['rows']:,}"
        features = "" if row["features"] is None else str(row["features"])
        cells = [row["key"], row["paper"], rows_text, features, row["target"], row["state"]]
        table.add_row(*map(Text, [*cells, row["how_to_get"]]))
    table_console().print(table)
