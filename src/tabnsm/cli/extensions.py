"""Commands that other distributions add to ``tabnsm``: entry points of "tabnsm.commands"."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from tabnsm.errors import MissingPackageError

if TYPE_CHECKING:
    Command = Any  # click's, which typer has inside or beside it, depending on its version

GROUP = "tabnsm.commands"
# Commands of ours that live in a distribution of their own, and the pip line of each.
KNOWN = {"bench": "pip install tabnsm-bench (from a checkout: pip install ./bench)"}


class ExtensibleGroup(TyperGroup):
    """A group that looks for a command it does not have among the installed entry points.

    Nothing is looked up for the group's own commands, so that extensions cost them no time.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, those of extensions last."""
        own = super().list_commands(ctx)
        return own + sorted(entry_points(group=GROUP).names - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Command | None:
        """The command with a name; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for entry in entry_points(group=GROUP, name=cmd_name):
            return _load(entry)
        if cmd_name in KNOWN:
            return _refusal(
                cmd_name,
                f"tabnsm {cmd_name} needs the package tabnsm-{cmd_name}, which is not installed. "
                f"Run: {KNOWN[cmd_name]}",
            )
        return None


def _load(entry: EntryPoint) -> Command:
    try:
        extension: typer.Typer = entry.load()
    except (ImportError, AttributeError) as error:
        # Told when the command is used: a broken extension must not break all others.
        provider = entry.dist.name if entry.dist else entry.value
        return _refusal(
            entry.name,
            f"tabnsm {entry.name} cannot be loaded from {provider} ({error}). "
            f"Run: pip install --force-reinstall {provider}",
        )
    command = typer.main.get_command(extension)
    command.name = entry.name
    return command


def _refusal(name: str, message: str) -> Command:
    """A command that takes any arguments and answers each with one error."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    anything = {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    }

    @app.command(name, help="Not installed.", context_settings=anything)
    def refuse() -> None:
        raise MissingPackageError(message)

    return typer.main.get_command(app)
