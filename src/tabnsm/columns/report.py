"""What was understood of each column, as a table for people and as plain data."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tabnsm.columns.kinds import KINDS
from tabnsm.columns.schema import ColumnSpec

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_HEADINGS = ("column", "kind", "features", "missing", "distinct", "note")


@dataclass(frozen=True)
class ColumnRow:
    """One input column.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        "numeric", "category", "code", "text", "date" or "drop".
    n_features : int
        Encoded features that it alone gives; text columns share theirs, which the first shows.
    missing : float
        Share of missing values in the training rows.
    distinct : int
        Number of distinct values in the training rows.
    note : str
        What was done with it.
    """

    name: str
    kind: str
    n_features: int
    missing: float
    distinct: int
    note: str

    def cells(self) -> tuple[str, ...]:
        """The row as strings.

        Returns
        -------
        tuple of str
            One string per heading.
        """
        missing = f"{self.missing:.1%}" if self.missing else "0"
        if 0 < self.missing < 0.0005:
            missing = "<0.1%"
        elif 0.9995 <= self.missing < 1:
            missing = ">99.9%"
        distinct = f"{self.distinct:,}"
        return (self.name, self.kind, str(self.n_features), missing, distinct, self.note)


class ColumnReport:
    """One row per input column; prints as a table in a terminal and in a notebook.

    Parameters
    ----------
    rows : sequence of ColumnRow
        The rows.

    Examples
    --------
    >>> print(ColumnReport([ColumnRow("age", "numeric", 1, 0.25, 40, "")]))
    column  kind     features  missing  distinct  note
    age     numeric         1    25.0%        40
    """

    def __init__(self, rows: Sequence[ColumnRow]) -> None:
        self.rows = list(rows)

    @classmethod
    def from_specs(
        cls, specs: Sequence[ColumnSpec], facts: Mapping[str, Any] | None = None
    ) -> ColumnReport:
        """Report on the columns of an encoder.

        Parameters
        ----------
        specs : sequence of ColumnSpec
            All columns.
        facts : mapping, optional
            What the groups of columns save beside the specs; needed for text.

        Returns
        -------
        ColumnReport
            One row per column.
        """
        described = {spec.position: (0, spec.note) for spec in specs}
        for kind, group in KINDS.items():
            mine = [spec for spec in specs if spec.kind == kind]
            found = group.describe(mine, facts or {})
            described |= {spec.position: row for spec, row in zip(mine, found, strict=True)}
        return cls(
            [
                ColumnRow(spec.name, spec.kind, n_features, spec.missing, spec.distinct, note)
                for spec in specs
                for n_features, note in [described[spec.position]]
            ]
        )

    def __iter__(self) -> Iterator[ColumnRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> list[dict[str, Any]]:
        """The rows as plain dictionaries, ready for a DataFrame.

        Returns
        -------
        list of dict
            One per column.
        """
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        lines = [_HEADINGS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADINGS))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if 2 <= k <= 4 and number else cell.ljust(width)
                for k, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for number, line in enumerate(lines)
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)

        body = "".join(f"<tr>{line(row.cells(), 'td')}</tr>" for row in self.rows)
        head = f"<tr>{line(_HEADINGS, 'th')}</tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"

    def __rich__(self) -> RichTable:
        from rich.markup import escape
        from rich.table import Table as RichTable

        table = RichTable()
        for k, heading in enumerate(_HEADINGS):
            table.add_column(heading, justify="right" if 2 <= k <= 4 else "left")
        for row in self.rows:
            table.add_row(*(escape(cell) for cell in row.cells()))
        return table
