"""Commands of other distributions: found by their entry points, or refused with the pip line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tabnsm.cli import extensions, main


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution that adds a command that works and one that does not load."""
    (tmp_path / "greeting.py").write_text(
        "import typer\n"
        "app = typer.Typer()\n"
        "@app.command()\n"
        "def greet(name: str) -> None:\n"
        '    "Say hello."\n'
        "    print(f'Hello {name}')\n"
    )
    info = tmp_path / "made_up-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tabnsm.commands]\ngreet = greeting:app\nbroken = no_such_module:app\nfit = greeting:app\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("distribution")
def test_an_entry_point_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greet", "Ada"]) == 0
    assert capsys.readouterr().out == "Hello Ada\n"
    assert main(["--help"]) == 0
    assert "Say hello." in capsys.readouterr().out


@pytest.mark.usefixtures("distribution")
def test_an_entry_point_cannot_replace_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "Ada"]) == 2
    assert "--target" in capsys.readouterr().err


@pytest.mark.usefixtures("distribution")
def test_a_broken_extension_is_named_and_breaks_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--help"]) == 0
    capsys.readouterr()
    assert main(["broken", "--any", "thing"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "cannot be loaded from made-up (No module named 'no_such_module')" in line
    assert line.endswith("Run: pip install --force-reinstall made-up")


@pytest.mark.parametrize("rest", [[], ["--help"], ["-h"], ["run", "--methods", "ridge", "-x"]])
def test_without_the_laboratory_its_pip_line_is_named(
    rest: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extensions, "GROUP", "tabnsm.no_such_group")
    assert main(["bench", *rest]) == 2
    assert capsys.readouterr().err == (
        "Error: tabnsm bench needs the package tabnsm-bench, which is not installed. "
        "Run: pip install tabnsm-bench (from a checkout: pip install ./bench)\n"
    )


@pytest.mark.slow
def test_the_benchmark_is_loaded_for_its_commands_only() -> None:
    code = "import sys; from tabnsm.cli import main; main(sys.argv[1:]); print(*sys.modules)"

    def modules(*arguments: str) -> set[str]:
        command = [sys.executable, "-c", code, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return {name for name in run.stdout.split() if name.startswith("tabnsm_bench")}

    assert "tabnsm_bench.cli" in modules("bench", "--help")
    assert not modules("info", "--help")
    # A list of commands needs their first lines, not what they work with.
    assert all(name.startswith("tabnsm_bench.cli") for name in modules("--help") - {"tabnsm_bench"})
