"""The kinds of columns: a new one is a subclass of ColumnGroup and one line here."""

from __future__ import annotations

from tabnsm.columns.category import CategoryColumns
from tabnsm.columns.code import CodeColumns
from tabnsm.columns.date import DateColumns
from tabnsm.columns.fitting import ColumnToFit, FitScope, FittedColumn
from tabnsm.columns.group import ColumnGroup
from tabnsm.columns.matched import MatchedTable
from tabnsm.columns.number import NumberColumns
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.text import TextColumns

# In the order in which a column is recognised and features are laid out; weights of saved models
# depend on the latter. Text takes whatever no other kind does.
KINDS: dict[str, type[ColumnGroup]] = {
    group.kind: group
    for group in (
        NumberColumns,
        DateColumns,
        CategoryColumns,
        CodeColumns,
        TextColumns,
    )
}


def fit_columns(table: MatchedTable, scope: FitScope) -> list[FittedColumn]:
    """Find the kind of every column and fit what that kind needs."""
    fitted: dict[int, FittedColumn] = {}
    for group in KINDS.values():
        fitted |= {column.spec.position: column for column in group.fit_blocks(table, scope)}
    for position, name in enumerate(table.table.names):
        if position not in fitted:
            fitted[position] = fit_column(table, position, name, scope)
    return [fitted[position] for position in range(table.table.n_columns)]


def fit_column(table: MatchedTable, position: int, name: str, scope: FitScope) -> FittedColumn:
    """Find the kind of one column and fit what that kind needs."""
    asked = scope.config.column_kinds.get(name)
    if asked == "drop":
        return FittedColumn(ColumnSpec(position, name, "drop", note="dropped: as asked"))
    source = ColumnToFit(table.table.column(name), position, scope)
    for group in KINDS.values() if asked is None else [KINDS[asked]]:
        column = group.fit(source)
        if column is not None:
            return column
    raise AssertionError(f"no kind takes column {name!r}")
