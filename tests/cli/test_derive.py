from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.container import read_container

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of the first rows of a table, and later rows."""
    folder = tmp_path_factory.mktemp("derive")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.arange(160) * 7919 % 1009, "a": rng.normal(size=160)})
    frame["b"] = rng.choice(["x", "y"], 160)
    frame["y"] = frame["a"] ** 2 + (frame["b"] == "x") + 0.1 * rng.normal(size=160)
    frame[:100].to_csv(folder / "early.csv", index=False)
    frame[100:].to_csv(folder / "late.csv", index=False)
    model = TabNSMRegressor(preset="fast", max_epochs=2, random_state=0)
    model.fit(frame[["a", "b"]][:100], frame["y"][:100]).save(folder / "m.safetensors")
    return folder


def run(folder: Path, *arguments: str) -> int:
    named = [str(folder / a) if "." in a and "=" not in a else a for a in arguments]
    return main(named)


def test_distill_writes_a_student(folder, capsys):
    command = ("distill", "m.safetensors", "early.csv", "-o", "s.safetensors", "--epochs", "1")
    assert run(folder, *command, "--target", "y", "--dtype", "bfloat16") == 0
    assert "against the true values" in capsys.readouterr().out
    assert read_container(folder / "s.safetensors")[1]["weights_dtype"] == "bfloat16"
    student = TabNSMRegressor.load(folder / "s.safetensors")
    assert student.options_.architecture.n_heads == 2
    assert run(folder, *command, "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_refit_goes_on_with_new_rows(folder, capsys):
    command = ("refit", "m.safetensors", "late.csv", "-t", "y", "-o", "r.safetensors")
    few = ("--epochs", "2", "--drop", "id")
    assert run(folder, *command, *few, "--old", "early.csv") == 0
    assert "Validation RMSE" in capsys.readouterr().out
    model = TabNSMRegressor.load(folder / "r.safetensors")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert run(folder, *command, "--epochs", "1") == 0
    assert "does not know, such as 'id'" in capsys.readouterr().err


def test_convert_reports_size_and_change(folder, capsys):
    command = ("convert", "m.safetensors", "-o", "c.safetensors", "--dtype", "int8")
    assert run(folder, *command, "--data", "late.csv") == 0
    out = capsys.readouterr().out
    assert "MB" in out
    assert "Predictions of 60 rows change by at most" in out
    before, after = ((folder / f"{n}.safetensors").stat().st_size for n in ("m", "c"))
    assert after < 0.7 * before
    rows = pd.read_csv(folder / "late.csv")
    first, second = (
        TabNSMRegressor.load(folder / f"{name}.safetensors").predict(rows) for name in ("m", "c")
    )
    assert 0 < np.abs(first - second).max() < 0.1 * first.std()
    assert run(folder, "info", "c.safetensors") == 0
    shown = capsys.readouterr().out.replace("\n", " ")
    assert "parameters of int8" in shown
    assert "rows of the fit that refit learns from: 90" in shown
    assert run(folder, "convert", "c.safetensors", "-o", "n.safetensors", "--no-rows", "-q") == 0
    assert read_container(folder / "n.safetensors")[1]["weights_dtype"] == "int8"
    (folder / "other.csv").write_text("nothing\n1\n")
    command = ("convert", "m.safetensors", "-o", "none.safetensors", "--data", "other.csv")
    assert run(folder, *command) == 2
    assert not (folder / "none.safetensors").exists()
    assert run(folder, "convert", "m.safetensors", "-o", "n.safetensors", "--no-rows", "-q") == 0
    tensors, _ = read_container(folder / "n.safetensors")
    assert not [name for name in tensors if name.startswith("replay.")]


def test_bad_input_is_one_line(folder, capsys):
    assert run(folder, "convert", "m.safetensors", "-o", "c.safetensors", "--dtype", "int4") == 2
    assert "dtype must be one of" in capsys.readouterr().err
    assert run(folder, "convert", "m.safetensors", "-o", "m.safetensors", "--dtype", "int8") == 2
    assert "must be a file of its own" in capsys.readouterr().err
    assert run(folder, "refit", "m.safetensors", "late.csv", "-t", "z", "-o", "r.safetensors") == 2
    assert "'z'" in capsys.readouterr().err
