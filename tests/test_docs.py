"""Every code block of README and docs runs, top to bottom, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Blocks of python and bash; other languages, such as text, are not meant to run."""
    return BLOCK.findall(page.read_text())


COMMAND = """
import shlex, tabnsm.cli
assert tabnsm.cli.main(shlex.split({line!r}, comments=True)[1:]) == 0, {line!r}
"""


def program(page: Path) -> str:
    """All blocks as one program: starting a process for each command would take most of the time.

    That `tabnsm` works from a shell is tested elsewhere.
    """
    parts: list[str] = []
    for language, code in blocks(page):
        if language == "python":
            parts.append(code)
        elif not re.search(r"\b(pip|make|git)\b", code):  # installation: CI's own steps run these
            lines = code.strip().splitlines()
            assert all(line.startswith("tabnsm ") for line in lines), code
            parts += [COMMAND.format(line=line) for line in lines]
    return "\n".join(parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", program(page)]
    environment = os.environ | {"PYTHONWARNINGS": "error::DeprecationWarning:tabnsm"}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"


def test_readme_has_blocks_to_run() -> None:
    languages = {language for language, _ in blocks(ROOT / "README.md")}
    assert languages == {"python", "bash"}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
