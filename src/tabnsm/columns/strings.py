"""Strings that are neither numbers nor dates: a category or free text."""

from __future__ import annotations

from tabnsm.columns.fitting import CONSTANT, EMPTY, ColumnToFit
from tabnsm.columns.schema import ColumnSpec
from tabnsm.tables.number_format import are_codes

# The paper: string columns with fewer distinct values than this are categories.
MIN_TEXT_VALUES = 10
# NOTE[DIFF]: repeated names say more by which they are than by what they mean, and one embedded
# category takes the place of 384 numbers.
MIN_REPEATS = 10
_CODES = "codes, because of leading zeros"


def are_categories(source: ColumnToFit) -> bool:
    """Whether the strings of a column are categories rather than free text."""
    values, counts = source.used
    repeats = counts.sum() >= MIN_REPEATS * len(values)
    return bool(
        source.column.storage == "categorical"
        or len(values) < MIN_TEXT_VALUES
        or (repeats and source.scope.config.repeated_strings == "category")
    )


def describe_strings(source: ColumnToFit, kind: str) -> ColumnSpec:
    """Facts of a column of strings; one that does not vary is dropped unless it was asked for."""
    values, _ = source.used
    factor, scope = source.column.to_factor(), source.scope
    n_missing = int(factor.counts(scope.rows)[-1])
    n_rows = len(factor.codes if scope.rows is None else scope.rows)
    note = _CODES if not source.is_asked and are_codes(values) else ""
    if not source.is_asked and not values:
        kind, note = "drop", EMPTY
    elif not (source.is_asked or scope.keep_constant) and len(values) == 1 and n_missing == 0:
        kind, note = "drop", CONSTANT
    return ColumnSpec(
        source.position,
        source.name,
        kind,
        missing=n_missing / n_rows,
        distinct=len(values),
        note=note,
    )
