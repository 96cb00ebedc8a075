"""Every example runs as a user would run it, in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, folder: Path) -> str:
    """Run an example with this environment's commands first on the path."""
    program = "bash" if name.endswith(".sh") else sys.executable
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    result = subprocess.run(
        [program, str(EXAMPLES / name)],
        cwd=folder,
        env=os.environ | {"PATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert result.returncode == 0, f"{result.stdout}\n{result.stderr}"
    return result.stdout


def test_all_examples_are_tested() -> None:
    found = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert found == {
        "house_prices.py",
        "several_targets.py",
        "text_columns.py",
        "explain.py",
        "report.py",
        "command_line.sh",
    }


@pytest.mark.slow
def test_house_prices(tmp_path: Path) -> None:
    output = run("house_prices.py", tmp_path)
    score = re.search(r"R2 on new rows: (-?[\d.]+)", output)
    assert score is not None
    assert float(score[1]) > 0.8
    assert (tmp_path / "houses.safetensors").stat().st_size > 0


@pytest.mark.slow
def test_several_targets(tmp_path: Path) -> None:
    output = run("several_targets.py", tmp_path)
    assert "3 targets: water, fat, protein" in output
    score = re.search(r"Mean R2 on new rows: (-?[\d.]+)", output)
    assert score is not None
    assert float(score[1]) > 0.6


@pytest.mark.slow
def test_text_columns(tmp_path: Path) -> None:
    output = run("text_columns.py", tmp_path)
    assert re.search(r"^emp_title +text +64", output, re.M)
    assert len(re.findall(r"^R2 with.*: +-?\d\.\d+$", output, re.M)) == 2


@pytest.mark.slow
def test_explain(tmp_path: Path) -> None:
    output = run("explain.py", tmp_path)
    assert "base value" in output
    assert {"waterfall.png", "beeswarm.png"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_report(tmp_path: Path) -> None:
    output = run("report.py", tmp_path)
    assert "open report.html in a browser" in output
    assert "<title>price: TabNSM report</title>" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "card.md").read_text().startswith("# TabNSMRegressor")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the example is for a Unix shell")
def test_command_line(tmp_path: Path) -> None:
    run("command_line.sh", tmp_path)
    n_lines = {name: len((tmp_path / name).read_text().splitlines()) for name in
               ("new.csv", "predictions.csv", "why/attributions.csv")}  # fmt: skip
    assert set(n_lines.values()) == {107}
    assert (tmp_path / "why" / "importance.png").stat().st_size > 0
