"""``tabnsm bench baselines`` and ``env``: what to compare with, and how to get it to run."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from tabnsm.cli.arguments import help_text
from tabnsm_bench.cli.arguments import AsJson, table_console

BASELINES_HELP = help_text(
    "List the baselines: name, family, provider, and whether each can run here.",
    """These are the paper's 38, in its families and order, and RealMLP. Where a package clashes
    with those of tabnsm, [bold]tabnsm bench env[/bold] makes an environment for it. Where no
    package has a method, an environment variable can name code of your own.""",
    examples=("tabnsm bench baselines", "tabnsm bench baselines --json"),
)
ENV_HELP = help_text(
    "Make the environment of a package that some baselines need.",
    """It is a venv in the user's cache folder (or below TABNSM_CACHE) that sees what is installed
    here, torch above all, and has only what differs. Runs find it by themselves. Without a name,
    the environments are listed.""",
    examples=(
        "tabnsm bench env",
        "tabnsm bench env pytabkit",
        "tabnsm bench env pytabkit --remove",
        "tabnsm bench env --all",
    ),
)


def register(app: typer.Typer) -> None:
    """Add the commands.

    Parameters
    ----------
    app : typer.Typer
        The application.
    """
    app.command("baselines", help=BASELINES_HELP)(baselines)
    app.command("env", help=ENV_HELP)(env)


def baselines(
    as_json: AsJson = False,
) -> None:
    """List the baselines."""
    from tabnsm_bench.baselines.catalog import BASELINES

    rows = [
        {
            "key": info.key,
            "name": info.name,
            "family": info.family,
            "provider": info.user_factory or info.provider,
            "environment": info.environment,
            "state": info.state,
            "reason": info.reason,
            "remedy": info.remedy,
        }
        for info in BASELINES.values()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print_baselines(rows)


def env(
    name: Annotated[str, typer.Argument(help="Environment.", metavar="[NAME]")] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Delete it instead.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Create it again if it exists.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every environment.")] = False,
) -> None:
    """Make, list or remove environments."""
    from tabnsm.errors import InvalidOptionError
    from tabnsm_bench.baselines.environment import ENVIRONMENTS

    if name and every:
        raise InvalidOptionError(f"--all must be given without a NAME, got {name!r}.")
    if not (name or every):
        if remove or again:
            raise InvalidOptionError("--remove and --again need the NAME of an environment.")
        _print_environments()
    for each in ENVIRONMENTS if every else filter(None, [name]):
        _change(each, remove, again)


def _change(name: str, remove: bool, again: bool) -> None:
    from tabnsm_bench.baselines.environment import find_environment, remove_environment

    if remove:
        found = remove_environment(name)
        print(f"{name}: {'removed' if found else 'there was none'}")
    elif (there := find_environment(name)) is not None and not again:
        print(f"{name}: ready in {there.folder}")
    else:
        _make(name)


def _make(name: str) -> None:
    from rich.console import Console
    from rich.markup import escape

    from tabnsm_bench.baselines.environment import find_spec_of, make_environment

    console = Console(stderr=True, highlight=False)
    with console.status(f"{name}: making the environment") as status:

        def show(line: str) -> None:
            status.update(f"{name}: {escape(line[: console.width - len(name) - 8])}")

        made = make_environment(find_spec_of(name), show)
    print(f"{name}: ready in {made.folder}")


def _print_baselines(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("method", "name", "family", "provider", "state", box=None)
    # Names are there to be copied: they are folded and not cut.
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True
    for row in rows:
        # The column of providers shows which is missing.
        why = row["remedy"] if row["provider"] else row["reason"]
        state = f"{row['state']}: {why}" if why else row["state"]
        cells = (row["key"], row["name"], row["family"], row["provider"] or "-", state)
        table.add_row(*(Text(cell) for cell in cells))
    ready = sum(row["state"] == "ready" for row in rows)
    console = table_console()
    console.print(table)
    console.print(f"{ready} of {len(rows)} are ready.")
    if any(not row["provider"] for row in rows):
        console.print(
            "A method without provider runs with code of your own: set TABNSM_METHOD_NAME to "
            "module:factory, where NAME is its key in capitals, with _ for -, and the factory "
            "gives a scikit-learn regressor or a method of tabnsm_bench.protocol.",
            markup=False,
        )


def _print_environments() -> None:
    from rich.table import Table
    from rich.text import Text

    from tabnsm_bench.baselines.catalog import BASELINES
    from tabnsm_bench.baselines.environment import ENVIRONMENTS, find_environment

    table = Table("environment", "for", "state", box=None)
    for name in ENVIRONMENTS:
        users = [info.name for info in BASELINES.values() if info.environment == name]
        there = find_environment(name)
        state = "not made" if there is None else f"ready in {there.folder}"
        table.add_row(*(Text(cell) for cell in (name, ", ".join(users), state)))
    table_console().print(table)
