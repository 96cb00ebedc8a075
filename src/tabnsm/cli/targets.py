"""Names of targets on the command line: one, or several with commas between."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tabnsm.errors import InvalidOptionError
from tabnsm.files import TableFile

if TYPE_CHECKING:
    from tabnsm.target import TargetModel


def split_names(text: str, known: Sequence[str] = ()) -> list[str]:
    """Names with commas between; one that has a comma itself stands in double quotes.

    Parameters
    ----------
    text : str
        As given on the command line.
    known : sequence of str
        Names that are taken as they are, comma or not.

    Examples
    --------
    >>> split_names("width, height"), split_names('"a,b",c'), split_names("a,b", ["a,b"])
    (['width', 'height'], ['a,b', 'c'], ['a,b'])
    """
    if text in known:
        return [text]
    names = [name.strip() for name in next(csv.reader([text], skipinitialspace=True)) or [""]]
    if len(set(names)) != len(names) or "" in names:
        raise InvalidOptionError(
            f"--target must be different names with commas between, got {text!r}."
        )
    return names


def target_columns(file: TableFile, text: str) -> list[str]:
    """Columns of a file that ``--target`` names."""
    names = split_names(text, file.names)
    for name in names:
        file.check_column(name, "--target")
    return names


def chosen_targets(target: TargetModel, names: Sequence[str] | None) -> list[int]:
    """Places of the model's targets that are named; None means all.

    Targets of a model that was fitted on an array have numbers, from 1, in place of names.
    """
    if names is None:
        return list(range(target.n_targets))
    for name in names:
        if name not in target.labels:
            known = ", ".join(map(repr, target.labels))
            raise InvalidOptionError(
                f"--target must name targets of the model, {known}, got {name!r}."
            )
    return [target.labels.index(name) for name in names]
