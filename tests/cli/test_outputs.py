"""No command replaces a file that it reads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main

pytestmark = pytest.mark.usefixtures("one_network")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)).round(3), columns=["a", "b"])
    frame["y"] = frame["a"] * frame["b"]
    frame.to_csv(folder / "d.csv", index=False)
    frame.to_csv(folder / "v.csv", index=False)
    model = TabNSMRegressor(max_epochs=1, d_token=8, head_width=8, random_state=0)
    model.fit(frame[["a", "b"]], frame["y"]).save(folder / "m.safetensors")
    (folder / "c.json").write_text('{"d_token": 8}')
    (folder / "why").mkdir()
    shutil.copy(folder / "d.csv", folder / "why" / "attributions.csv")
    shutil.copy(folder / "m.safetensors", folder / "why" / "heatmap.svg")
    (folder / "run").mkdir()
    (folder / "symbolic.csv").symlink_to("d.csv")
    os.link(folder / "d.csv", folder / "hard.csv")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


FIT = ["fit", "d.csv", "-t", "y", "--epochs", "1", "-q"]
PREDICT = ["predict", "m.safetensors", "d.csv", "-q"]
TUNE = ["tune", "d.csv", "-t", "y", "--trials", "1", "--epochs", "1", "-q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*FIT, "-o", "d.csv"], "the same file as DATA"),
        ([*FIT, "-o", "./d.csv"], "the same file as DATA"),
        ([*FIT, "-o", "symbolic.csv"], "the same file as DATA"),
        ([*FIT, "-o", "hard.csv"], "the same file as DATA"),
        ([*FIT, "-o", "v.csv", "--validation", "v.csv"], "the same file as --validation"),
        ([*FIT, "-o", "c.json", "--config", "c.json"], "the same file as --config"),
        ([*FIT, "-o", "other.parquet"], "which is the name of a table"),
        ([*FIT, "-o", "run/checkpoint.safetensors", "--checkpoint-dir", "run"], "a checkpoint"),
        ([*PREDICT, "-o", "d.csv"], "the same file as DATA"),
        ([*PREDICT, "-o", "hard.csv"], "the same file as DATA"),
        ([*PREDICT, "-o", "m.safetensors"], "the same file as MODEL"),
        (["explain", "m.safetensors", "why/attributions.csv", "-o", "why"], "file as DATA"),
        (["explain", "why/heatmap.svg", "d.csv", "-o", "why"], "heatmap.svg in --out must be"),
        ([*TUNE, "-o", "d.csv"], "--out must be a file of its own"),
        ([*TUNE, "-o", "b.json", "--storage", "hard.csv"], "--storage must be a file of its own"),
        ([*TUNE, "-o", "v.csv", "--validation", "v.csv"], "the same file as --validation"),
        ([*TUNE, "-o", "b.json", "--storage", "./b.json"], "the same file as --storage"),
        ([*TUNE, "-o", "s.lock", "--storage", "s"], "the same file as the lock of --storage"),
        ([*TUNE, "-o", "new.csv"], "must be a JSON file of options"),
        ([*TUNE, "-o", "m.safetensors"], "must be a JSON file of options"),
    ],
)
def test_outputs_are_never_inputs(
    made: Path,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(made)
    before = contents(made)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err
    assert contents(made) == before


def test_save_refuses_the_name_of_a_table(made: Path) -> None:
    model = TabNSMRegressor.load(made / "m.safetensors")
    before = contents(made)
    with pytest.raises(ValueError, match=r"ends in \.safetensors, got .*d\.csv"):
        model.save(made / "d.csv")
    assert contents(made) == before


def test_an_unusual_ending_is_warned_of(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [str(made / "d.csv"), "-t", "y", "-o", str(tmp_path / "model.bin")]
    assert main(["fit", *where, "--preset", "fast", "--epochs", "1", "-q"]) == 0
    assert "model.bin does not end in .safetensors" in capsys.readouterr().err
    TabNSMRegressor.load(tmp_path / "model.bin")
