"""Every example runs as a user would run it, in a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
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
        "export_onnx.py",
        "report.py",
        "callbacks.py",
        "intervals.py",
        "larger_than_memory.py",
        "command_line.sh",
        "distill.py",
        "new_rows.py",
        "ray_cluster.py",
        "spark.py",
    }


@pytest.mark.slow
def test_house_prices(tmp_path: Path) -> None:
    output = run("house_prices.py", tmp_path)
    score = re.search(r"R2 on new rows: (-?[\d.]+)", output)
    assert score is not None
    assert float(score[1]) > 0.8
    assert (tmp_path / "houses.safetensors").stat().st_size > 0


@pytest.mark.slow
def test_distill(tmp_path: Path) -> None:
    output = run("distill.py", tmp_path)
    (teacher, large), (student, small) = re.findall(r"R2 (-?[\d.]+), ([\d.]+) MB", output)
    assert float(student) > float(teacher) - 0.1
    assert float(small) < float(large) / 4


@pytest.mark.slow
def test_new_rows(tmp_path: Path) -> None:
    output = run("new_rows.py", tmp_path)
    (_, before), (kept, after) = re.findall(r"R2 (-?[\d.]+) on .* (-?[\d.]+) on", output)
    assert float(after) > float(before) + 0.2
    assert float(kept) > 0.5


@pytest.mark.slow
def test_several_targets(tmp_path: Path) -> None:
    output = run("several_targets.py", tmp_path)
    assert "3 targets: water, fat, protein" in output
    score = re.search(r"Mean R2 on new rows: (-?[\d.]+)", output)
    assert score is not None
    assert float(score[1]) > 0.6


@pytest.mark.slow
def test_larger_than_memory(tmp_path: Path) -> None:
    output = run("larger_than_memory.py", tmp_path)
    assert "3000 predictions from 5 files" in output
    assert "Same predictions as from memory: True" in output
    assert not list(tmp_path.iterdir())


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
def test_callbacks(tmp_path: Path) -> None:
    output = run("callbacks.py", tmp_path)
    assert "stopped: stopped by a callback" in output
    assert "same predictions: True" in output
    assert (tmp_path / "shared" / "houses" / "README.md").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the example is for a Unix shell")
def test_command_line(tmp_path: Path) -> None:
    run("command_line.sh", tmp_path)
    n_lines = {name: len((tmp_path / name).read_text().splitlines()) for name in
               ("new.csv", "predictions.csv", "why/attributions.csv")}  # fmt: skip
    assert set(n_lines.values()) == {107}
    assert (tmp_path / "why" / "importance.png").stat().st_size > 0


@pytest.mark.slow
def test_export_onnx(tmp_path: Path) -> None:
    output = run("export_onnx.py", tmp_path)
    difference = re.search(r"largest difference from predict: (\S+)", output)
    assert difference is not None
    assert float(difference[1]) < 1e-4
    assert "text.onnx" in output


@pytest.mark.slow
def test_ray_cluster(tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    output = run("ray_cluster.py", tmp_path)
    assert "Same as without Ray: True" in output
    assert "106 predictions" in output


@pytest.mark.slow
def test_spark(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("Spark or Java is not installed")
    assert "506 predictions, the same as without Spark: True" in run("spark.py", tmp_path)


@pytest.mark.slow
def test_intervals(tmp_path: Path) -> None:
    output = run("intervals.py", tmp_path)
    shares = re.findall(r"(\d+)% intervals hold (\d+)% of the prices", output)
    assert [level for level, _ in shares] == ["50", "80", "90"]
    assert all(abs(int(level) - int(share)) <= 15 for level, share in shares)
