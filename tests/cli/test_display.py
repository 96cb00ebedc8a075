"""What a command shows in a terminal before it is at work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tabnsm.cli.display import announce

# A terminal that notes what is imported when the first line is written to it.
SCRIPT = """
import io, sys
class Terminal(io.StringIO):
    first = None
    def isatty(self):
        return True
    def write(self, text):
        self.first = self.first or (text, "torch" in sys.modules)
        return super().write(text)
sys.stderr = terminal = Terminal()
from tabnsm.cli import main
code = main(sys.argv[1:])
print(code, *terminal.first, terminal.getvalue().count("\\n"))
"""


def test_a_log_and_a_quiet_command_show_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    announce("Reading", quiet=False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    announce("Reading", quiet=True)
    assert capsys.readouterr().err == ""
    announce("Reading", quiet=False)
    assert capsys.readouterr().err == "Reading ...\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["fit", "data.csv", "-t", "y", "-o", "m.safetensors", "--preset", "none"], "Reading"),
        (["predict", "data.csv", "data.csv"], "Loading"),
    ],
)
def test_the_first_line_comes_before_torch(
    tmp_path: Path, arguments: list[str], first: str
) -> None:
    (tmp_path / "data.csv").write_text("a,y\n1,2\n2,3\n")
    command = [sys.executable, "-c", SCRIPT, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert result.stdout.split() == ["2", first, "data.csv", "False", "2"], result.stderr
