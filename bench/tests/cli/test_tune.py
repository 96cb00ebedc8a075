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
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["y"] = frame["a"] - frame["b"]
    frame.to_csv(tmp_path / "toy.csv", index=False)
    return tmp_path


def tune(folder: Path, method: str, *options: str) -> int:
    where = ["--dataset", "toy", "-t", "y", "-d", str(folder), "-o", str(folder / "best.json")]
    return main(["bench", "tune", method, *where, *options])


def test_a_baseline_is_searched_and_saved(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = folder / "ridge.journal"
    assert tune(folder, "ridge", "--trials", "3", "--storage", str(journal)) == 0
    shown = capsys.readouterr()
    assert shown.err.count("trial ") == 3
    assert "tabnsm bench run --methods ridge+tuned=3" in shown.out
    best = json.loads((folder / "best.json").read_text())
    assert (best["method"], best["dataset"], best["n_trials"]) == ("ridge", "toy", 3)
    # More trials go on from those that are there.
    assert tune(folder, "ridge", "--trials", "5", "--storage", str(journal)) == 0
    assert capsys.readouterr().err.count("trial ") == 2


@pytest.mark.slow
def test_options_of_tabnsm_are_for_fit(folder: Path) -> None:
    options = ("--trials", "2", "--max-epochs", "1", "--quiet")
    assert tune(folder, "tabnsm-fast", *options) == 0
    model, best = folder / "m.safetensors", folder / "best.json"
    where = [str(folder / "toy.csv"), "--target", "y", "--out", str(model), "--quiet"]
    assert main(["fit", *where, "--config", str(best)]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ridgi",), "Did you mean ridge"),
        (("linear-regression",), "which has none left"),
        (("mine:make",), "METHOD must be a listed one"),
        (("ridge", "--trials", "0"), "number of trials >= 1, got 0"),
        (("tabebm",), "TABNSM_METHOD_TABEBM"),
    ],
)
def test_nothing_begins_when_something_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    assert tune(folder, *arguments) != 0
    assert complaint in " ".join(capsys.readouterr().err.split())
    assert not (folder / "best.json").exists()
