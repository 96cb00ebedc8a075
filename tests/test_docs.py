"""Every code block of README and docs runs, top to bottom, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Blocks of python and bash; other languages, such as text, are not meant to run."""
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    program: list[str] = []
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONWARNINGS": "error::DeprecationWarning:tabnsm",
    }
    for language, code in blocks(page):
        if language == "bash" and re.search(r"\b(pip|make|git)\b", code):
            continue  # installation: CI's own steps run these
        if language == "python":
            program.append(code)
            continue
        run_python(program, tmp_path, environment)
        program.clear()
        run(["bash", "-euo", "pipefail", "-c", code], tmp_path, environment)
    run_python(program, tmp_path, environment)


def run_python(program: list[str], folder: Path, environment: dict[str, str]) -> None:
    if program:
        run([sys.executable, "-c", "\n".join(program)], folder, environment)


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert result.returncode == 0, f"{command[-1]}\n{result.stdout}\n{result.stderr}"


def test_readme_has_blocks_to_run() -> None:
    languages = {language for language, _ in blocks(ROOT / "README.md")}
    assert languages == {"python", "bash"}


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
