"""Warnings about columns that are probably not meant as inputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.kinds import KINDS
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.table_encoder import TableEncoder
from tabnsm.tables.date_format import find_date_format
from tabnsm.tables.table_input import Table

Floats = NDArray[np.float64]

_MIN_ROWS = 50
_SAMPLE_ROWS = 10_000
_MAX_BINS = 200
_ROWS_PER_BIN = 5
_NEAR_PERFECT = 0.999
_MOSTLY = 0.99
_ID_NAME = re.compile(
    r"(^|[\W_])(id|idx|index|key|nr|no|row|rows|rownames?|(row_?)?num(ber)?)$", re.I
)
_CAMEL_ID = re.compile(r"[a-z](ID|Id)$")


def warn_about_columns(
    table: Table,
    encoder: TableEncoder,
    y: Floats,
    fit_rows: NDArray[np.int64] | None = None,
) -> list[str]:
    """Messages about columns that do not vary, look like row ids or leak the target.

    Parameters
    ----------
    table : Table
        The input columns; within its `keep_columns`, none that the fit has read is read again.
    encoder : TableEncoder
        Fitted on the same table and rows.
    y : ndarray of float64, shape (n,) or (n, t)
        Target or targets of all rows, NaN where missing.
    fit_rows : ndarray of int64, optional
        Rows to look at; all by default.

    Returns
    -------
    list of str
        At most one message of each sort; about ids and leaks none for fewer than 50 rows.
    """
    rows = np.arange(table.n_rows) if fit_rows is None else np.asarray(fit_rows)
    used = [spec for spec in encoder.specs if spec.kind != "drop"]
    targets = np.asarray(y, dtype=np.float64).reshape(table.n_rows, -1)
    return describe_suspects(
        encoder.specs, targets.shape[1], *find_suspects(table, used, targets, rows)
    )


def find_suspects(
    table: Table, specs: Sequence[ColumnSpec], targets: Floats, rows: NDArray[np.int64]
) -> tuple[list[str], list[str]]:
    """Names of columns that look like row ids, and of those that leak one of the targets, (n, t).

    Each column is looked at by itself. None for fewer than 50 rows.
    """
    if len(rows) < _MIN_ROWS:
        return [], []
    found = {name for column in targets.T for name in _find_leaks(table, specs, column, rows)}
    leaks = [spec.name for spec in specs if spec.name in found]
    return _find_ids(table, specs, rows), leaks


def describe_suspects(
    specs: Sequence[ColumnSpec], n_targets: int, ids: Sequence[str], leaks: Sequence[str]
) -> list[str]:
    """Messages about what `find_suspects` found, and about columns that do not vary."""
    messages = []
    if not any(KINDS[spec.kind].varies(spec) for spec in specs if spec.kind != "drop"):
        messages.append(
            f"None of the {len(specs)} column(s) varies in the training rows, so that the "
            "model can only predict a constant. Check which columns and rows were passed."
        )
    if ids:
        messages.append(
            f"{_listed(ids)} look{_s(ids)} like a row id, which does not help on new rows. "
            f"Consider leaving it out: column_kinds={{{ids[0]!r}: 'drop'}}."
        )
    if leaks:
        what = "the target" if n_targets == 1 else "a target"
        messages.append(
            f"{_listed(leaks)} alone predict{_s(leaks)} {what} almost perfectly. "
            "Is that known before the target is? If not, leave it out: "
            f"column_kinds={{{leaks[0]!r}: 'drop'}}."
        )
    return messages


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    plural = "s" if len(names) > 1 else ""
    return f"Column{plural} {', '.join(map(repr, names[:5]))}{more}"


def _s(names: Sequence[str]) -> str:
    return "s" if len(names) == 1 else ""


def _numbers(table: Table, specs: Sequence[ColumnSpec]) -> Iterator[tuple[ColumnSpec, Floats]]:
    for block, matrix, _ in MatchedTable.at_fit(table).number_blocks(specs):
        for k, spec in enumerate(block):
            yield spec, matrix[:, k]


def _checked_as(specs: Sequence[ColumnSpec], form: str) -> list[ColumnSpec]:
    return [spec for spec in specs if KINDS[spec.kind].checked_as == form]


def _find_ids(table: Table, specs: Sequence[ColumnSpec], rows: NDArray[np.int64]) -> list[str]:
    unique = [spec for spec in specs if not spec.missing and spec.distinct == len(rows)]
    numbers = [
        spec
        for spec in _checked_as(unique, "numbers")
        if not (spec.number_format.prefix or spec.number_format.suffix)
    ]
    found = {
        spec.name
        for spec, values in _numbers(table, numbers)
        if _are_number_ids(spec.name, values[rows])
    }
    found |= {
        spec.name
        for spec in _checked_as(unique, "strings")
        if _are_string_ids(table.column(spec.name).to_factor().values)
    }
    return [spec.name for spec in specs if spec.name in found]


def _are_number_ids(name: str, values: Floats) -> bool:
    if not (values == np.floor(values)).all():
        return False
    return _is_named_like_id(name) or _is_sequence(values)


def _are_string_ids(values: Sequence[str]) -> bool:
    n_like = sum(" " not in value and any(c.isdigit() for c in value) for value in values)
    return n_like >= _MOSTLY * len(values) and find_date_format(values) is None


def _is_named_like_id(name: str) -> bool:
    return bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))


def _is_sequence(values: Floats) -> bool:
    """Numbers that rise or fall with the row, or that fill their range with few gaps."""
    with np.errstate(over="ignore"):  # an infinite step is one step up or down all the same
        steps = np.diff(values)
        monotone = max(np.mean(steps > 0), np.mean(steps < 0)) >= _MOSTLY
        dense = values.max() - values.min() < 1.1 * len(values)
    return bool(monotone or dense)


def _find_leaks(
    table: Table, specs: Sequence[ColumnSpec], y: Floats, rows: NDArray[np.int64]
) -> list[str]:
    rows = rows[np.isfinite(y[rows])]
    generator = np.random.default_rng(0)
    if len(rows) > _SAMPLE_ROWS:
        rows = np.sort(generator.choice(rows, _SAMPLE_ROWS, replace=False))
    target = y[rows]
    if len(rows) < _MIN_ROWS or target.min() == target.max():
        return []
    # Divided first, so that sums and squares of huge numbers stay finite.
    target = target / max(float(np.abs(target).max()), np.finfo(float).tiny)
    target = (target - target.mean()) / max(float(target.std()), np.finfo(float).tiny)
    held_out = generator.random(len(rows)) < 0.5
    is_number = table.is_number
    numbers, strings = (_checked_as(specs, form) for form in ("numbers", "strings"))
    # Plain numbers are read again, for few rows. All else was converted by the fit.
    plain = [spec for spec in numbers if is_number[spec.position]]
    converted = [spec for spec in numbers if not is_number[spec.position]]
    sampled = itertools.chain(
        _numbers(table.take(rows), plain) if plain else (),
        ((spec, values[rows]) for spec, values in _numbers(table, converted)),
    )
    leaks = {spec.name for spec, values in sampled if _numbers_predict(values, target, held_out)}
    leaks |= {
        spec.name
        for spec in strings
        if _groups_predict(table.column(spec.name).to_factor().codes[rows], target, held_out)
    }
    return [spec.name for spec in specs if spec.name in leaks]


def _groups_predict(codes: NDArray[np.int64], y: Floats, held_out: NDArray[np.bool_]) -> bool:
    few = len(np.unique(codes)) <= max(1, len(codes) // (2 * _ROWS_PER_BIN))
    return few and _group_score(codes, y, held_out) >= _NEAR_PERFECT


def _numbers_predict(values: Floats, y: Floats, held_out: NDArray[np.bool_]) -> bool:
    present = np.isfinite(values)
    # Half a column cannot leak a whole target.
    if present.mean() < 0.5 or present.sum() < _MIN_ROWS:
        return False
    values, y, held_out = values[present], y[present], held_out[present]
    if max(_correlation(values, y), _rank_correlation(values, y)) >= _NEAR_PERFECT:
        return True
    n_bins = min(_MAX_BINS, len(y) // (2 * _ROWS_PER_BIN))
    values = np.ldexp(values, -2)  # only their order counts, and differences stay finite
    edges = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]))
    bins = np.searchsorted(edges, values, side="right")
    return _group_score(bins, y, held_out) >= _NEAR_PERFECT


def _correlation(x: Floats, y: Floats) -> float:
    # Divided first, so that squares of huge numbers stay finite.
    x = x / max(float(np.abs(x).max()), np.finfo(float).tiny)
    x, y = x - x.mean(), y - y.mean()
    norm = float(np.sqrt((x @ x) * (y @ y)))
    return abs(float(x @ y)) / norm if norm > 0 else 0.0


def _rank_correlation(x: Floats, y: Floats) -> float:
    from scipy.stats import rankdata

    return _correlation(rankdata(x), rankdata(y))


def _group_score(groups: NDArray[np.int64], y: Floats, held_out: NDArray[np.bool_]) -> float:
    """R2 on the held-out rows of predicting each group's mean in the other rows."""
    shifted = groups - groups.min()
    size = int(shifted.max()) + 1
    learn, test = ~held_out, held_out
    if learn.sum() < 2 or test.sum() < 2:
        return 0.0
    counts = np.bincount(shifted[learn], minlength=size)
    sums = np.bincount(shifted[learn], weights=y[learn], minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), y[learn].mean())
    spread = float(np.square(y[test] - y[test].mean()).sum())
    error = float(np.square(y[test] - means[shifted[test]]).sum())
    return 1.0 - error / spread if spread > 0 else 0.0
