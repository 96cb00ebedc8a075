from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    frame["y"] = frame["a"] * frame["b"]
    frame.to_csv(tmp_path / "toy.csv", index=False)
    return tmp_path


def study(folder: Path, name: str, *options: str) -> int:
    where = ["-d", str(folder), "-r", str(folder / "results"), "--target", "y"]
    return main(["bench", "study", name, *where, *options])


def test_every_study_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    from tabnsm_bench.studies import STUDIES

    assert main(["bench", "studies"]) == 0
    shown = capsys.readouterr().out
    assert all(f" {name} " in shown for name in STUDIES)
    assert main(["bench", "studies", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(STUDIES)


@pytest.mark.slow
def test_a_study_runs_and_writes_its_table(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--dataset", "toy", "--seeds", "0-1", "--preset", "fast", "--max-epochs", "1")
    assert study(folder, "mixer", *options, "--threads", "1") == 0
    shown = capsys.readouterr()
    assert "without FTM" in shown.out
    assert "4 runs: 4 done" in shown.err
    stem = folder / "results" / "studies" / "mixer-fast-toy"
    assert "without FTM" in stem.with_suffix(".md").read_text()
    # Done runs are only looked at; --no-run needs none of the rest.
    assert study(folder, "mixer", *options, "--no-run", "--json") == 0
    table = json.loads(capsys.readouterr().out)
    assert len(table["rows"]) == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("mixers",), "mixer"),
        (("mixer",), "needs at least 1 dataset, got none"),
        (("mixer", "--dataset", "toy", "--seeds", "a"), "--seeds must be whole numbers"),
        (("mixer", "--dataset", "toy", "--level", "3"), "--level is for the study threshold"),
        (("samples", "--dataset", "toy", "--peers", "ridgi"), "Did you mean ridge"),
    ],
)
def test_nothing_begins_when_something_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    assert study(folder, *arguments) != 0
    shown_text = " ".join(capsys.readouterr().err.split())
    assert complaint in shown_text
    assert not (folder / "results").exists()
