"""Tables as text: Markdown for pages, LaTeX for papers."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Emphasis = Literal["", "best", "second"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "†": r"$\dag$",
    "‡": r"$\ddag$",
    "§": r"\S{}",
    "*": r"$\ast$",
    "◇": r"$\diamond$",
    "–": "--",
    "×": r"$\times$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True)
class Cell:
    """One cell.

    Parameters
    ----------
    text : str
        What it says.
    emphasis : {"", "best", "second"}
        Best is set in bold, second is underlined.
    marks : tuple of int
        Numbers of the footnotes that it refers to.
    """

    text: str
    emphasis: Emphasis = ""
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class TextTable:
    r"""A table of cells.

    Parameters
    ----------
    headings : sequence of str
        Names of the columns.
    rows : sequence of sequence of Cell
        Cells; those of a row whose first differs from the row above begin a new block in LaTeX
        if `is_grouped`.
    n_names : int
        Columns on the left that are names and not figures.
    is_grouped : bool
        Whether the first column holds groups, which are named once.
    notes : sequence of str
        Sentences below the table.
    footnotes : sequence of str
        What marks refer to, from 1.

    Examples
    --------
    >>> table = TextTable(["method", "a_b"], [[Cell("x"), Cell("1.5 ± 0.1", "best")]])
    >>> print(table.to_markdown())
    | method | a_b |
    | :-- | --: |
    | x | **1.5 ± 0.1** |
    >>> print(table.to_latex())
    \begin{tabular}{lr}
    \toprule
    method & a\_b \\
    \midrule
    x & \textbf{1.5 $\pm$ 0.1} \\
    \bottomrule
    \end{tabular}
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_names: int = 1
    is_grouped: bool = False
    notes: Sequence[str] = field(default_factory=tuple)
    footnotes: Sequence[str] = field(default_factory=tuple)

    def to_markdown(self) -> str:
        """The table as GitHub's Markdown, where ``<ins>`` is what underlines."""
        sides = [":--" if i < self.n_names else "--:" for i in range(len(self.headings))]
        lines = [[_escape_markdown(heading) for heading in self.headings], sides]
        lines += [[_markdown_cell(cell) for cell in row] for row in self._shown_rows()]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        below = [_escape_markdown(note) for note in self.notes]
        below += [
            f"<sup>{number}</sup> {_escape_markdown(note)}"
            for number, note in enumerate(self.footnotes, 1)
        ]
        return "\n\n".join([text, *below])

    def to_latex(self) -> str:
        """The table as LaTeX for the package booktabs."""
        sides = "l" * self.n_names + "r" * (len(self.headings) - self.n_names)
        lines = [rf"\begin{{tabular}}{{{sides}}}", r"\toprule"]
        lines += [_latex_line([_escape_latex(heading) for heading in self.headings]), r"\midrule"]
        shown = self._shown_rows()
        for place, row in enumerate(shown):
            if self.is_grouped and place and row[0].text:
                lines.append(r"\midrule")
            lines.append(_latex_line([_latex_cell(cell) for cell in row]))
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\footnotesize {_escape_latex(note)}" for note in self.notes]
        lines += [
            rf"\par\footnotesize $^{{{number}}}$ {_escape_latex(note)}"
            for number, note in enumerate(self.footnotes, 1)
        ]
        return "\n".join(lines)

    def _shown_rows(self) -> list[list[Cell]]:
        """The rows, with the name of a group in its first row only."""
        shown, last = [], None
        for row in self.rows:
            first = Cell("") if self.is_grouped and row[0].text == last else row[0]
            last = row[0].text
            shown.append([first, *row[1:]])
        return shown


class Footnotes:
    """Gives every different note a number, from 1, in the order of their first use."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def marks(self, notes: Sequence[str]) -> tuple[int, ...]:
        """Numbers of some notes.

        Examples
        --------
        >>> footnotes = Footnotes()
        >>> footnotes.marks(["slow"]), footnotes.marks(["few rows", "slow"])
        ((1,), (1, 2))
        """
        self.notes += [note for note in dict.fromkeys(notes) if note not in self.notes]
        return tuple(sorted(self.notes.index(note) + 1 for note in set(notes)))


def score_text(mean: float, std: float = math.nan) -> str:
    """A score to four digits, with its standard deviation to the same place.

    Examples
    --------
    >>> score_text(2.84213, 0.0312), score_text(0.13728), score_text(17525.4), score_text(0.0)
    ('2.842 ± 0.031', '0.1373', '17525', '0.000')
    """
    decimals = 3 if mean == 0 else max(0, 3 - math.floor(math.log10(abs(mean))))
    text = f"{mean:.{decimals}f}"
    return text if math.isnan(std) else f"{text} ± {std:.{decimals}f}"


def emphases(scores: Sequence[float]) -> list[Emphasis]:
    """Mark the lowest score as best and the next as second; equal scores share a place.

    Parameters
    ----------
    scores : sequence of float
        As printed; NaN is missing.

    Examples
    --------
    >>> emphases([2.0, 1.0, math.nan, 2.0, 3.0])
    ['second', 'best', '', 'second', '']
    """
    places = sorted({score for score in scores if not math.isnan(score)})
    names: dict[float, Emphasis] = dict(zip(places, ("best", "second"), strict=False))
    return [names.get(score, "") for score in scores]


def _markdown_cell(cell: Cell) -> str:
    text = _escape_markdown(cell.text)
    if cell.emphasis == "best":
        text = f"**{text}**"
    elif cell.emphasis == "second":
        text = f"<ins>{text}</ins>"
    marks = ",".join(map(str, cell.marks))
    return f"{text} <sup>{marks}</sup>" if marks else text


def _latex_cell(cell: Cell) -> str:
    text = _escape_latex(cell.text)
    if cell.emphasis == "best":
        text = rf"\textbf{{{text}}}"
    elif cell.emphasis == "second":
        text = rf"\underline{{{text}}}"
    marks = ",".join(map(str, cell.marks))
    return f"{text}$^{{{marks}}}$" if marks else text


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells).strip() + r" \\"


def _escape_markdown(text: str) -> str:
    return re.sub(r"([|*<>])", r"\\\1", text)


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
