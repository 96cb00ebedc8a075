"""docs/paper-map.md names functions and tests that exist."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "paper-map.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tabnsm\.[\w.]+)`", PAGE))))
def test_functions_exist(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        module, attribute = name.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w./:]+)`", PAGE))))
def test_tests_exist(name: str) -> None:
    path, _, function = name.partition("::")
    assert (ROOT / path).is_file()
    assert f"def {function}" in (ROOT / path).read_text()


def test_departures_are_marked_and_listed() -> None:
    from tabnsm.options import PRESETS

    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert "NOTE[DIFF]" in source
    section = PAGE.split("## Where the default departs")[1].split("\n## ")[0]
    for option in PRESETS["paper"]:
        assert f"`{option}`" in section, option
