"""Warnings about columns that are probably not meant as inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tabnsm.columns.kinds import KINDS
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
        The input columns.
    encoder : TableEncoder
        Fitted on the same table and rows.
    y : ndarray of float64
        Target of all rows, NaN where missing.
    fit_rows : ndarray of int64, optional
        Rows to look at; all by default.

    Returns
    -------
    list of str
        At most one message of each sort; about ids and leaks none for fewer than 50 rows.
    """
    rows = np.arange(table.n_rows) if fit_rows is None else np.asarray(fit_rows)
    used = [spec for spec in encoder.specs if spec.kind != "drop"]
    messages = []
    if not any(KINDS[spec.kind].varies(spec) for spec in used):
        messages.append(
            f"None of the {table.n_columns} column(s) varies in the training rows, so that the "
            "model can only predict a constant. Check which columns and rows were passed."
        )
    if len(rows) < _MIN_ROWS:
        return messages
    ids = [spec.name for spec in used if _looks_like_id(table, spec, rows)]
    if ids:
        messages.append(
            f"{_listed(ids)} look{_s(ids)} like a row id, which does not help on new rows. "
            f"Consider leaving it out: column_kinds={{{ids[0]!r}: 'drop'}}."
        )
    leaks = _find_leaks(table, used, np.asarray(y, dtype=np.float64), rows)
    if leaks:
        messages.append(
            f"{_listed(leaks)} alone predict{_s(leaks)} the target almost perfectly. "
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


def _looks_like_id(table: Table, spec: ColumnSpec, rows: NDArray[np.int64]) -> bool:
    if spec.missing or spec.distinct != len(rows):
        return False
    column = table.column(spec.name)
    if spec.kind == "numeric":
        if spec.number_format.prefix or spec.number_format.suffix:
            return False
        values = column.to_float(spec.number_format)[rows]
        return bool((values == np.floor(values)).all()) and (
            _is_named_like_id(spec.name) or _is_sequence(values)
        )
    if spec.kind in ("text", "category"):
        words = column.to_factor().values
        code_like = [" " not in word and any(c.isdigit() for c in word) for word in words]
        return bool(np.mean(code_like) >= _MOSTLY) and find_date_format(words) is None
    return False


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
    sample = table.take(rows)
    held_out = generator.random(len(rows)) < 0.5
    return [spec.name for spec in specs if _predicts(sample, spec, target, held_out)]


def _predicts(table: Table, spec: ColumnSpec, y: Floats, held_out: NDArray[np.bool_]) -> bool:
    column = table.column(spec.name)
    if spec.kind in ("category", "text"):
        codes = column.to_factor().codes
        few = len(np.unique(codes)) <= max(1, len(codes) // (2 * _ROWS_PER_BIN))
        return few and _group_score(codes, y, held_out) >= _NEAR_PERFECT
    if spec.kind != "numeric":
        return False
    values = column.to_float(spec.number_format)
    present = np.isfinite(values)
    # Half a column cannot give a whole target away.
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
