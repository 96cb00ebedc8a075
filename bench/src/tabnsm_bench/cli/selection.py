"""Which methods and datasets a command is about, by the names that a user knows them by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.cli.arguments import require_names

if TYPE_CHECKING:
    from tabnsm_bench.scores import ScoreTable


def expand_methods(option: str, text: str) -> tuple[list[str], list[str]]:
    """Methods by name, by "family:NAME" or by "all", and those of a group that cannot run here.

    Parameters
    ----------
    option : str
        Where they were given, for messages.
    text : str
        With commas between. "all" is TabNSM's default and paper presets and every baseline;
        "family:tree" is every baseline of the family whose name begins so.

    Returns
    -------
    methods, left_out : list of str
        Methods to run, and a sentence per baseline that is not ready.

    Examples
    --------
    >>> expand_methods("--methods", "family:classical")[0][:2]
    ['linear-regression', 'knn-5']
    >>> expand_methods("--methods", "ridge,family:tabnsm")[0][:2]
    ['ridge', 'tabnsm-default']
    """
    from tabnsm_bench.baselines.catalog import BASELINES, TABNSM_METHODS

    methods: list[str] = []
    left_out: list[str] = []
    families = list(dict.fromkeys(info.family for info in BASELINES.values()))
    for name in require_names(option, text):
        kind, is_family, family = name.partition("family:")
        if name == "all":
            methods += ["tabnsm-default", "tabnsm-paper"]
        elif kind or not is_family:
            methods.append(name)
            continue
        elif family and "tabnsm".startswith(family.lower()):
            methods += TABNSM_METHODS
            continue
        elif not any(family and known.lower().startswith(family.lower()) for known in families):
            raise InvalidOptionError(
                f"{option} family: must begin the name of a family, one of TabNSM, "
                f"{', '.join(families)}; got {family!r}."
            )
        for info in BASELINES.values():
            if name == "all" or info.family.lower().startswith(family.lower()):
                if info.reason:
                    left_out.append(f"{info.key} is left out. {info.reason} {info.remedy}")
                else:
                    methods.append(info.key)
    return list(dict.fromkeys(methods)), list(dict.fromkeys(left_out))


def choose_names(text: str | None, known: Sequence[str]) -> list[str] | None:
    """Comma-separated names, of which some of the known ones have commas themselves.

    Parameters
    ----------
    text : str or None
        As given; None stays None.
    known : sequence of str
        Names that may occur.

    Returns
    -------
    list of str or None

    Examples
    --------
    >>> choose_names("CP, blog_feedback, 5000 rows", ["CP", "blog_feedback, 5000 rows"])
    ['CP', 'blog_feedback, 5000 rows']
    """
    if text is None:
        return None
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    spelled = {re.sub(r"\s*,\s*", ",", name): name for name in known}
    found: list[str] = []
    while pieces:
        lengths = range(len(pieces), 0, -1)
        n = next((n for n in lengths if ",".join(pieces[:n]) in spelled), 1)
        joined = ",".join(pieces[:n])
        found.append(spelled.get(joined, joined))
        pieces = pieces[n:]
    return list(dict.fromkeys(found))


def choose_datasets(text: str | None, table: ScoreTable) -> list[str] | None:
    """Datasets of a table of scores, by their label, their key or the paper's abbreviation.

    Parameters
    ----------
    text : str or None
        With commas between; None stays None.
    table : ScoreTable
        The table.

    Returns
    -------
    list of str or None
        Labels; a name that is none of these stays as it is, for the table to refuse.
    """
    from tabnsm_bench.datasets.catalog import ALIASES

    labels: dict[str, list[str]] = {label: [label] for label in table.datasets}
    for label in table.datasets:
        abbreviation = table.counterparts.get(label)
        for name in (label.split(", ")[0], *([abbreviation] if abbreviation else ())):
            if name not in table.datasets:
                labels.setdefault(name, []).append(label)
    for alias, key in ALIASES.items():
        if key in labels:
            labels.setdefault(alias, labels[key])
    names = choose_names(text, list(labels))
    if names is None:
        return None
    return list(dict.fromkeys(label for name in names for label in labels.get(name, [name])))
