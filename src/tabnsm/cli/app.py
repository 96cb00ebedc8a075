"""The commands put together, and what becomes of their errors and warnings."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TextIO

import typer

from tabnsm.cli import derive, explain, export, fit, info, predict, report, tune
from tabnsm.cli.arguments import help_text
from tabnsm.cli.extensions import ExtensibleGroup
from tabnsm.errors import TabNSMError, TabNSMWarning

BAD_INPUT, INTERRUPTED = 2, 130

app = typer.Typer(
    name="tabnsm",
    cls=ExtensibleGroup,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=help_text(
        "Regression on wide, mixed tables: numbers, categories, dates and free text.",
        """Tables are CSV, TSV, JSON lines (also .gz), Parquet, Feather and Excel files.
        [bold]tabnsm COMMAND --help[/bold] shows the options of a command, with examples;
        [bold]tabnsm demo[/bold] shows it all at work.""",
        examples=(
            "tabnsm fit sales.csv --target price --out price.safetensors",
            "tabnsm predict price.safetensors new.csv --out predictions.csv",
        ),
    ),
)
app.command("fit", help=fit.HELP)(fit.fit)
app.command("tune", help=tune.HELP)(tune.tune)
app.command("predict", help=predict.PREDICT_HELP)(predict.predict)
app.command("evaluate", help=predict.EVALUATE_HELP)(predict.evaluate)
app.command("explain", help=explain.HELP)(explain.explain)
app.command("report", help=report.HELP)(report.report)
app.command("export", help=export.HELP)(export.export)
app.command("distill", help=derive.DISTILL_HELP)(derive.distill)
app.command("refit", help=derive.REFIT_HELP)(derive.refit)
app.command("convert", help=derive.CONVERT_HELP)(derive.convert)
app.command("info", help=info.INFO_HELP)(info.info)
app.command("demo", help=info.DEMO_HELP)(info.demo)
app.command("cache", help=info.CACHE_HELP)(info.cache)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"tabnsm {version('tabnsm')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Arguments are as after ``tabnsm`` in a shell, or taken from it. Returns the exit code: 0, or 2
    after one line on bad input, or 130 after Ctrl-C. A pipe that its reader closed early ends the
    process with 1.

    Examples
    --------
    >>> main(["info", "missing.safetensors"])
    2
    """
    # Typer has click inside or beside it, depending on its version; either way this is the
    # class of all complaints about options and arguments.
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]
    try:
        with _plain_warnings():
            code = app(arguments, prog_name="tabnsm", standalone_mode=False)
    except Exception as error:
        if isinstance(error, typer.Abort) or _is_interrupt(error):
            code = INTERRUPTED
        elif isinstance(error, usage_error):
            context = getattr(error, "ctx", None)
            command = "tabnsm" if context is None else context.command_path
            return _refuse(f"{error.format_message()} See: {command} --help")  # type: ignore[attr-defined]
        elif isinstance(error, (TabNSMError, OSError)):
            return _refuse(str(error))
        else:
            raise
    if code == INTERRUPTED:
        print("Interrupted: no file was written.", file=sys.stderr)
    return int(code or 0)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error, as behind the ImportError of a module half imported."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _refuse(message: str) -> int:
    print("Error: " + " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show a warning as one line, and once, even if every batch repeats it."""
    shown: set[str] = set()
    show_others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, TabNSMWarning):
            show_others(message, category, filename, lineno, file, line)
            return
        # Batches differ in their counts only.
        key = re.sub(r"\d+", "#", str(message))
        if key not in shown:
            shown.add(key)
            print(f"Warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TabNSMWarning)
        warnings.showwarning = show
        yield
