"""The table that comes out of a study: on the screen, as Markdown, as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm.container import atomic_write

if TYPE_CHECKING:
    from rich.table import Table

NOTHING = "-"


@dataclass(frozen=True)
class Column:
    """One column that is shown.

    Parameters
    ----------
    key : str
        Key of a row.
    header : str
    style : str
        Format of its numbers, as in ``format(value, style)``.
    sd : str or None
        Key of a standard deviation to show behind the number.
    """

    key: str
    header: str
    style: str = ".4g"
    sd: str | None = None

    def text(self, row: Mapping[str, Any]) -> str:
        """What the column shows of a row.

        Examples
        --------
        >>> Column("rmse", "RMSE", ".3f", sd="sd").text({"rmse": 2.0, "sd": 0.25})
        '2.000 ± 0.250'
        >>> Column("rmse", "RMSE").text({"rmse": None})
        '-'
        >>> Column("rmse", "RMSE").text({"rmse": 27202.78})
        '27203'
        """
        value, sd = row.get(self.key), row.get(self.sd or "")
        shown = self._number(value)
        return f"{shown} ± {self._number(sd, signed=False)}" if sd is not None else shown

    def _number(self, value: Any, signed: bool = True) -> str:
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return NOTHING
        if isinstance(value, bool) or not isinstance(value, int | float):
            return str(value)
        if isinstance(value, int):
            return f"{value:,}"
        style = self.style if signed else self.style.lstrip("+")
        if style.endswith("g") and abs(value) >= 10_000:  # .4g would be 2.72e+04
            style = ".0f"
        return format(value, style)


@dataclass(frozen=True)
class StudyTable:
    """Rows of a study, with notes.

    Parameters
    ----------
    study : str
        Name of the study.
    title : str
    columns : sequence of Column
        What is shown; rows hold more.
    rows : list of dict
        JSON-able.
    notes : list of str
        Sentences below the table.
    facts : dict
        Further JSON-able findings that belong to no row.
    """

    study: str
    title: str
    columns: Sequence[Column]
    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "format": 1,
            "study": self.study,
            "title": self.title,
            "rows": self.rows,
            "facts": self.facts,
            "notes": self.notes,
        }

    def to_markdown(self) -> str:
        r"""The table as Markdown, with its title and notes.

        Examples
        --------
        >>> print(StudyTable("s", "Title", [Column("n", "runs")], [{"n": 3}]).to_markdown())
        ### Title
        <BLANKLINE>
        | runs |
        |---:|
        | 3 |
        """
        shown = self._shown()
        lines = [f"### {self.title}", ""]
        lines.append(f"| {' | '.join(column.header for column in shown)} |")
        lines.append(f"|{'|'.join('---:' if self._is_number(c) else '---' for c in shown)}|")
        for row in self.rows:
            cells = (column.text(row).replace("|", "\\|") for column in shown)
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines + [f"\n{note}" for note in self.notes])

    def to_rich(self) -> Table:
        """The rows for a terminal; a dataset that is the only one is in the title."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0))
        several = len({row.get("dataset") for row in self.rows}) > 1
        shown = [column for column in self._shown() if several or column.key != "dataset"]
        for column in shown:
            right = self._is_number(column)
            table.add_column(column.header, justify="right" if right else "left", no_wrap=right)
        for row in self.rows:
            table.add_row(*(escape(column.text(row)) for column in shown))
        return table

    def write(self, folder: str | Path, stem: str) -> tuple[Path, Path]:
        """Write ``stem.json`` and ``stem.md`` into a folder, which is made if need be."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        as_json, as_markdown = folder / f"{stem}.json", folder / f"{stem}.md"
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False)
        atomic_write(as_json, (text + "\n").encode())
        atomic_write(as_markdown, (self.to_markdown() + "\n").encode())
        return as_json, as_markdown

    def _shown(self) -> list[Column]:
        """Columns with a value in at least one row."""
        return [
            c for c in self.columns if any(row.get(c.key) not in (None, "") for row in self.rows)
        ]

    def _is_number(self, column: Column) -> bool:
        values = [row.get(column.key) for row in self.rows]
        return all(v is None or (isinstance(v, int | float) and v is not True) for v in values)
