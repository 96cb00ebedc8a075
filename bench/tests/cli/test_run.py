from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm_bench.cli import app
from tabnsm_bench.cli.arguments import other_target
from tabnsm_bench.store import load_results

TOYS = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table that has no description."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    frame["price"] = frame["a"] - frame["b"]
    (tmp_path / "data").mkdir()
    frame.to_csv(tmp_path / "data" / "sales.csv", index=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TOYS), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("TOY_CURE", str(tmp_path / "cure"))
    return tmp_path


def run(folder: Path, methods: str, *options: str, datasets: str = "sales") -> Any:
    where = ["--data-dir", str(folder / "data"), "--results", str(folder / "results")]
    what = ["--methods", methods, "--datasets", datasets]
    arguments = ["run", *what, *where, *options]
    return app(arguments, prog_name="tabnsm bench", standalone_mode=False)


@pytest.mark.slow
def test_runs_are_done_then_skipped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--target", "price", "--seeds", "3", "--splits", "7", "--threads", "1")
    assert run(folder, "ridge,toy_methods:Failing", *options) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "[1/2] done: ridge on sales, seed 3, split 7"
    assert shown[1].startswith("[2/2] failed: toy_methods:Failing on sales, seed 3, split 7: Runt")
    assert shown[2] == "2 runs: 1 done, 1 failed"
    failed, done = sorted(load_results(folder / "results"), key=lambda r: r["state"] == "done")
    assert failed["error"].startswith("RuntimeError: not cured yet")
    assert done["spec"]["target"] == "price"
    assert done["metrics"]["test"]["r2"] > 0.9
    assert (folder / "results/ridge/sales/paper-7-3-target=price.json").exists()
    assert run(folder, "ridge", *options) is None
    assert capsys.readouterr().out == "1 run: 1 finished before\n"


@pytest.mark.slow
def test_two_ways_to_write_an_option_are_one_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = "toy_methods:Linear+takes_frames=true,toy_methods:Linear+takes_frames=True"
    assert run(folder, methods, "--target", "price", "--threads", "1") is None
    assert capsys.readouterr().out.splitlines()[-1] == "1 run: 1 done"
    [result] = load_results(folder / "results")
    assert result["spec"]["method"] == "toy_methods:Linear+takes_frames=True"


def test_nothing_begins_when_something_is_wrong(folder: Path) -> None:
    cases: list[tuple[str, tuple[str, ...], str, str]] = [
        ("ridge", (), "sales", "--target must be given"),
        ("ridgi", ("-t", "price"), "sales", "Did you mean ridge"),
        ("ridge+beta=1", ("-t", "price"), "sales", "got 'beta'"),
        ("tabnsm-default+atention=full", ("-t", "price"), "sales", "got 'atention'"),
        ("tabebm", ("-t", "price"), "sales", "cannot run here"),
        ("family:tre,family:x", ("-t", "price"), "sales", "one of TabNSM, Classical, .* got 'x'"),
        (",", ("-t", "price"), "sales", "--methods must name at least 1"),
        ("ridge", ("-t", "price", "--seeds", "1,x"), "sales", "--seeds must be whole numbers"),
        ("ridge", ("-t", "price", "--max-rows", "0"), "sales", "max_rows must be above 0"),
    ]
    for methods, options, datasets, complaint in cases:
        with pytest.raises(InvalidOptionError, match=complaint):
            run(folder, methods, *options, datasets=datasets)
    with pytest.raises(InvalidDataError, match="no dataset 'sale'"):
        run(folder, "ridge", datasets="sale")
    with pytest.raises(InvalidDataError, match=r"no 'prise'\. Its columns: 'a', 'b', 'price'"):
        run(folder, "ridge,lasso", "-t", "prise")
    assert not (folder / "results").exists()


def test_a_file_elsewhere_names_the_option_to_add(folder: Path) -> None:
    other = folder / "other.csv"
    other.write_text("a,y\n1,2\n")
    with pytest.raises(InvalidOptionError, match=f"--data-dir {folder}$"):
        run(folder, "ridge", "-t", "y", datasets=str(other))


def test_the_target_of_the_description_is_no_other_target(folder: Path) -> None:
    (folder / "data" / "sales.json").write_text('{"name": "sales", "target": "price"}')
    assert other_target("sales", folder / "data", "price") is None
    assert other_target("sales", folder / "data", None) is None
    assert other_target("sales", folder / "data", "a") == "a"
