"""Category columns of which most new values are not in the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tabnsm.columns.schema import ColumnSpec
from tabnsm.tables.column import Column, Factor
from tabnsm.tables.number_format import parse_floats

# Some new categories are usual; most of them new is a sign of another spelling.
_MAX_SHARE = 0.5
_N_EXAMPLES = 3
_N_COLUMNS = 5


@dataclass(frozen=True)
class UnseenValues:
    """Values of one category column that were not in the training rows.

    `share` is of the rows that have a value; `hint` says how they differ from the known values,
    where that is known.
    """

    name: str
    share: float
    examples: tuple[str, ...]
    hint: str


def find_unseen(column: Column, factor: Factor, spec: ColumnSpec) -> UnseenValues | None:
    """What is unknown in a category column, if that is more than half of it."""
    known = set(spec.vocabulary)
    found = (value not in known for value in factor.values)
    is_unseen = np.fromiter(found, dtype=bool, count=len(factor.values))
    if not is_unseen.any():
        return None
    counts = factor.counts(None)[:-1]
    n_unseen, n_present = int(counts[is_unseen].sum()), int(counts.sum())
    if n_unseen <= _MAX_SHARE * n_present:
        return None
    by_count = np.argsort(np.where(is_unseen, -counts, 1), kind="stable")
    examples = [factor.values[k] for k in by_count[: min(_N_EXAMPLES, int(is_unseen.sum()))]]
    hint = _difference(examples, spec.vocabulary, is_number=column.storage == "number")
    return UnseenValues(spec.name, n_unseen / n_present, tuple(examples), hint)


def describe_unseen(columns: Sequence[UnseenValues]) -> str:
    """One message about all columns.

    Examples
    --------
    >>> print(describe_unseen([UnseenValues("city", 1.0, ("oslo",), "")]))
    Most values of 'city' are not in the training rows: 100 %, such as 'oslo'. They count as \
unseen, so that the column says nothing about these rows. If they should be known, write them as \
in the training rows.
    """
    named = "; ".join(
        f"{column.name!r} are not in the training rows: {_percent(column.share)}, such as "
        f"{', '.join(map(repr, column.examples))}{column.hint and f' ({column.hint})'}"
        for column in columns[:_N_COLUMNS]
    )
    more = len(columns) - _N_COLUMNS
    return (
        f"Most values of {named}{f'; and of {more} more column(s)' if more > 0 else ''}. They "
        "count as unseen, so that the column says nothing about these rows. If they should be "
        "known, write them as in the training rows."
    )


def _percent(share: float) -> str:
    return "100 %" if share == 1 else f"{min(100 * share, 99.9):.3g} %"


def _difference(examples: Sequence[str], vocabulary: Sequence[str], *, is_number: bool) -> str:
    plain = {value.strip().casefold(): value for value in vocabulary}
    for example in examples:
        if (match := plain.get(example.strip().casefold())) is not None:
            return f"differs from {match!r} in case or blanks"
    numbers, _ = parse_floats(list(vocabulary))
    values, _ = parse_floats(list(examples))
    for example, value in zip(examples, values, strict=True):
        if (match_at := np.flatnonzero(numbers == value)).size:
            return f"{example!r} is {vocabulary[match_at[0]]!r} written in another way"
    if is_number and np.isnan(numbers).all() and len(vocabulary):
        return f"numbers, where the training rows have strings such as {vocabulary[0]!r}"
    return ""
