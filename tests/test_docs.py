"""Every code block of README and docs runs, top to bottom, in a folder of its own."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tabnsm.options import PRESETS, resolve_options

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / folder / "README.md" for folder in (".", "bench")),
    *(
        page
        for folder in ("docs", "bench/docs")
        for page in sorted((ROOT / folder).rglob("*.md"))
        if "_build" not in page.parts
    ),
]
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


# README's blocks run in an empty environment: scripts/check_readme.py, which `make test` calls.
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.relative_to(ROOT).as_posix())
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


def test_guide_pages_run_code() -> None:
    for page in (DOCS / "guide").glob("*.md"):
        is_written = len(page.read_text().splitlines()) > 1
        assert blocks(page) or not is_written or page.name == "index.md", page.name


def test_external_links_are_well_formed() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((\w+:[^)]*)\)", page.read_text()):
            parts = urlsplit(target)
            assert parts.scheme in ("http", "https"), f"{page.name}: {target}"
            assert "." in parts.netloc, f"{page.name}: {target}"
            assert not re.search(r"\s", target), f"{page.name}: {target}"


@pytest.mark.parametrize("module", ["tabnsm", "tabnsm.nn"])
def test_reference_lists_the_public_names(module: str) -> None:
    listed = (DOCS / "api" / "index.md").read_text().split()
    missing = set(importlib.import_module(module).__all__) - set(listed) - {"__version__"}
    assert not missing


@pytest.mark.parametrize("preset", ["fast", "paper"])
def test_preset_tables_list_all_options(preset: str) -> None:
    configs = resolve_options({"preset": "default"}).to_dict().values()
    default = {name: value for config in configs for name, value in config.items()}
    rows = [
        f"| `{name}` | `{default[name]!r}` | `{value!r}` |".replace("'", '"')
        for name, value in PRESETS[preset].items()
    ]
    page = (DOCS / "guide" / "presets.md").read_text()
    table = page.split(f"<!-- preset: {preset} -->")[1].split("<!-- end -->")[0]
    assert table.strip().splitlines()[2:] == rows


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build a folder of pages as `make docs` builds the site."""
    makefile = (ROOT / "Makefile").read_text()
    command = re.search(r"^\t\$\(BIN\)/python (-m sphinx .*?)docs docs/_build/html$", makefile,
                        re.M | re.S)  # fmt: skip
    assert command is not None
    options = shlex.split(command[1].replace("\\\n", " "))
    return subprocess.run(
        [sys.executable, *options, "-c", str(DOCS), str(source), str(target)],
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[a page](other.md)", ""),
        ("[a place](other.md#second)", ""),
        ("[no page](missing.md)", "missing.md"),
        ("[no place](other.md#missing)", "missing"),
        ("```{eval-rst}\n.. autofunction:: tabnsm.no_such_name\n```", "no_such_name"),
        ("```{eval-rst}\n:py:func:`tabnsm.no_such_name`\n```", "no_such_name"),
    ],
)
def test_build_is_strict(text: str, error: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text(f"# Index\n\n{text}\n\n```{{toctree}}\nother\n```\n")
    (source / "other.md").write_text("# Other\n\n## Second\n\nText.\n")
    result = build(source, tmp_path / "site")
    assert result.returncode == (1 if error else 0), result.stderr
    assert error in result.stderr


@pytest.mark.slow
def test_site_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    formula = "```{math}\n\\sum_d x_d\n```"
    (source / "index.md").write_text(f"# Index\n\n[policy](../SECURITY.md)\n\n{formula}\n")
    result = build(source, tmp_path / "site")
    assert result.returncode == 0, result.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert 'href="https://github.com/tabnsm/tabnsm/blob/main/SECURITY.md"' in page
    assert "<math" in page
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="https?://', page)
