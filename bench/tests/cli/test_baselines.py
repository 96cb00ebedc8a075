from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tabnsm.cli import main
from tabnsm_bench.baselines.environment import ENVIRONMENTS, EnvironmentSpec

INFO = "tabnsm_toy-1.0.dist-info"


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["bench", "baselines"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        "linear-regression",
        "LinearRegression",
        "Classical",
        "scikit-learn",
        "ready",
    ]
    assert any("needs environment: Run: tabnsm bench env deeptab" in line for line in lines)
    assert any("unavailable: It generates rows class by class" in line for line in lines)
    assert any(line.endswith("of 39 are ready.") for line in lines)


def test_list_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABNSM_METHOD_GRANDE", "mine:Grande")
    assert main(["bench", "baselines", "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 39
    assert rows["grande"]["state"] == "ready"
    assert rows["grande"]["provider"] == "mine:Grande"
    assert rows["realmlp"]["remedy"] == "Run: tabnsm bench env pytabkit"
    assert rows["tabebm"]["reason"]


@pytest.mark.slow
def test_environment(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = tmp_path / "tabnsm_toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as stream:
        stream.writestr("tabnsm_toy.py", "")
        stream.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: tabnsm-toy\nVersion: 1.0")
        stream.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        stream.writestr(f"{INFO}/RECORD", "")
    spec = EnvironmentSpec("toy", (str(wheel),), ("tabnsm_toy",))
    monkeypatch.setitem(ENVIRONMENTS, "toy", spec)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["bench", "env", "toy"]) == 0
    ready = capsys.readouterr().out
    assert ready.startswith("toy: ready in ")
    assert main(["bench", "env", "toy"]) == 0
    assert capsys.readouterr().out == ready
    assert main(["bench", "env"]) == 0
    listed = capsys.readouterr().out
    assert ready.strip().partition(": ")[2] in listed
    assert "TabR, RealMLP" in listed
    assert main(["bench", "env", "toy", "--remove"]) == 0
    assert capsys.readouterr().out == "toy: removed\n"
    assert main(["bench", "env", "toy", "--remove"]) == 0
    assert capsys.readouterr().out == "toy: there was none\n"


def test_bad_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "env", "conda"]) == 2
    assert "must be one of deeptab, pytabkit" in capsys.readouterr().err
    assert main(["bench", "env", "--remove"]) == 2
    assert "need the NAME" in capsys.readouterr().err
    assert main(["bench", "env", "deeptab", "--all"]) == 2
    assert "--all must be given without a NAME" in capsys.readouterr().err


def test_all_environments_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(ENVIRONMENTS):
        monkeypatch.delitem(ENVIRONMENTS, name)
    for name in ("one", "two"):
        monkeypatch.setitem(ENVIRONMENTS, name, EnvironmentSpec(name, (), ()))
    assert main(["bench", "env", "--all"]) == 0
    assert [line.split(" in ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "one: ready",
        "two: ready",
    ]
    assert main(["bench", "env", "--all", "--remove"]) == 0
    assert capsys.readouterr().out == "one: removed\ntwo: removed\n"
