"""Where results and pages are, and text between two marks of a page."""

from __future__ import annotations

from pathlib import Path

from tabnsm.container import atomic_write

BENCH = Path(__file__).resolve().parents[1]
SMALLER = BENCH / "docs" / "smaller.md"
"""The page on smaller models and new rows."""


def renew(path: Path, name: str, text: str) -> None:
    """Write `text` between ``<!-- NAME -->`` and ``<!-- end of NAME -->`` of a page."""
    marks = (f"<!-- {name} -->", f"<!-- end of {name} -->")
    atomic_write(path, put_between(path.read_text(), marks, text).encode())


def put_between(page: str, marks: tuple[str, str], text: str) -> str:
    """The page with `text` between its two marks, in place of what is there.

    >>> put_between("Before <a> old <b> after", ("<a>", "<b>"), "new")
    'Before <a>\\n\\nnew\\n\\n<b> after'
    """
    start, opening, rest = page.partition(marks[0])
    _, closing, end = rest.partition(marks[1])
    if not (opening and closing):
        raise ValueError(f"The page must have {marks[0]} and, behind it, {marks[1]}; add them.")
    return f"{start}{marks[0]}\n\n{text}\n\n{marks[1]}{end}"
