"""Arguments that several commands of ``tabnsm bench`` share, checked before any run begins."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabnsm.errors import InvalidOptionError

if TYPE_CHECKING:
    from rich.console import Console

    from tabnsm_bench.protocol import RunSpec

FAILED, INTERRUPTED = 1, 130
DATA_DIR, RESULTS_DIR = Path("data"), Path("results")
_LOG_WIDTH = 200

DataDir = Annotated[
    Path, typer.Option("--data-dir", "-d", help="Folder of table files.", envvar="TABNSM_DATA_DIR")
]
ResultsDir = Annotated[Path, typer.Option("--results", "-r", help="Folder of results.")]
Encoding = Annotated[
    str, typer.Option(help="Preset that encodes tables for baselines: paper or default.")
]
Target = Annotated[
    str | None, typer.Option("--target", "-t", help="Column to predict, if not described.")
]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds to fit before it is ended.", metavar="SECONDS")
]
MaxRows = Annotated[int | None, typer.Option(help="Maximum rows of a table.")]
MaxEpochs = Annotated[int | None, typer.Option(help="Maximum passes over the rows.")]
Processes = Annotated[int, typer.Option("--processes", "-p", help="Runs at a time.")]
Threads = Annotated[int | None, typer.Option(help="Cores per run; all are shared if not given.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def split_names(text: str) -> list[str]:
    """Comma-separated names, without duplicates.

    Examples
    --------
    >>> split_names("CP, AQ,,CP")
    ['CP', 'AQ']
    """
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def require_names(option: str, text: str) -> list[str]:
    """The same, with an error if there is none.

    Examples
    --------
    >>> require_names("--methods", ",")
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: --methods must name at least 1, got ','.
    """
    found = split_names(text)
    if not found:
        raise InvalidOptionError(f"{option} must name at least 1, got {text!r}.")
    return found


def numbers(option: str, text: str) -> list[int]:
    """Whole numbers and ranges of them, each once.

    Examples
    --------
    >>> numbers("--seeds", "0,1,2"), numbers("--seeds", "0-3,9")
    ([0, 1, 2], [0, 1, 2, 3, 9])
    """
    found: list[int] = []
    for entry in require_names(option, text):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", entry)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise InvalidOptionError(
                f"{option} must be whole numbers, as in 0,1,2 or 0-19, got {text!r}."
            )
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def dataset_key(option: str, name: str, data_dir: Path, target: str | None) -> str:
    """Key of a dataset whose file is there.

    Parameters
    ----------
    option : str
        Where the name was given, for messages.
    name : str
        Key, abbreviation or file.
    data_dir : Path
        Folder of table files.
    target : str or None
        Column to predict, if it was given.

    Returns
    -------
    str

    Raises
    ------
    InvalidOptionError
        If the file is in another folder, or nothing says what to predict.
    InvalidDataError
        If there is no such file, or it lacks the given target.
    """
    from tabnsm_bench.datasets.loading import find, load

    descriptor, path = find(name, data_dir)
    if path.parent.resolve() != data_dir.resolve():
        raise InvalidOptionError(
            f"{option} must name files in --data-dir, got {name}. Add: --data-dir {path.parent}"
        )
    if not (target or descriptor.target):
        raise InvalidOptionError(f"{path} has no description, so --target must be given.")
    if target and target != descriptor.target:
        load(name, data_dir, target=target)  # a wrong target would cost every run
    return descriptor.key


def other_target(key: str, data_dir: Path, target: str | None) -> str | None:
    """The given target, None where it is the one that the dataset's description has anyway.

    Parameters
    ----------
    key : str
        As from `dataset_key`.
    data_dir : Path
        Folder of table files.
    target : str or None
        Column to predict, if it was given.

    Returns
    -------
    str or None
    """
    from tabnsm_bench.datasets.loading import find

    return target if target and target != find(key, data_dir)[0].target else None


def check_methods(specs: Iterable[RunSpec]) -> None:
    """Raise `InvalidOptionError` for a method, or an option of one, that no run could use.

    Parameters
    ----------
    specs : iterable of RunSpec
        All runs.
    """
    from tabnsm_bench.baselines.catalog import TABNSM_METHODS, find
    from tabnsm_bench.execute import make_method

    for spec in {spec.method: spec for spec in specs}.values():
        if ":" in spec.method_key:
            continue
        info = None if spec.method_key in TABNSM_METHODS else find(spec.method_key)
        if info is not None and info.reason:
            raise InvalidOptionError(f"{info.name} cannot run here. {info.reason} {info.remedy}")
        # One with an environment starts a process there, only to be told of a wrong option.
        if info is None or not info.environment:
            make_method(spec)


def table_console(stderr: bool = False) -> Console:
    """A console for tables: a log or a pipe has no edge that one would have to be squeezed into."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _LOG_WIDTH
    return Console(highlight=False, stderr=stderr, width=width)
