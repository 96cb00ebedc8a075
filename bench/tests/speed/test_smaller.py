"""The page on smaller models and new rows has the tables that its records make."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "n_lines"), [("distillation", 2 + 6), ("small_tables", 2 + 12 + 3), ("refit", 2 + 25)]
)
def test_the_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch, name: str, n_lines: int) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "speed"))
    table = importlib.import_module(name).page_table()
    assert len(table.splitlines()) == n_lines
    assert table in (ROOT / "docs" / "smaller.md").read_text()
