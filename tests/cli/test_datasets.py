"""Folders and patterns of files on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.cli import main
from tabnsm.files import read_table

pytestmark = pytest.mark.usefixtures("one_network")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"n{k}" for k in range(120)],
            "size": rng.normal(size=120),
            "shop": rng.choice(["north", "south"], 120),
            "weight": rng.uniform(1, 2, 120),
        }
    )
    frame["price"] = 2 * frame["size"] + (frame["shop"] == "north")
    (tmp_path / "data").mkdir()
    frame[:50].to_parquet(tmp_path / "data" / "a.parquet", index=False)
    frame[50:].to_parquet(tmp_path / "data" / "b.parquet", index=False)
    frame.to_parquet(tmp_path / "whole.parquet", index=False)
    return tmp_path


def fit(data: Path, source: str, out: str, *options: str) -> int:
    where = ["--target", "price", "--drop", "id", "--weight", "weight", "--out", str(data / out)]
    train = ["--epochs", "2", "--preset", "fast", "--quiet"]
    return main(["fit", str(data / source), *where, *train, *options])


@pytest.mark.slow
def test_a_folder_is_fitted_predicted_and_evaluated_as_the_file(data, capsys, monkeypatch):
    assert fit(data, "whole.parquet", "file.safetensors") == 0
    assert fit(data, "data", "folder.safetensors", "--work-dir", str(data / "work")) == 0
    valid = str(data / "data" / "b.parquet")
    assert fit(data, "data/*.parquet", "other.safetensors", "--validation", valid) == 0
    assert not list((data / "work").iterdir())
    outputs = []
    for model, source in (("file", "whole.parquet"), ("folder", "data")):
        out = data / f"{model}.parquet"
        where = [str(data / f"{model}.safetensors"), str(data / source)]
        assert main(["predict", *where, "--out", str(out), "--id", "id", "--quiet"]) == 0
        outputs.append(read_table(out))
        capsys.readouterr()
        assert main(["evaluate", *where, "--target", "price", "--json"]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0].equals(outputs[2])
    assert outputs[1] == outputs[3]
    monkeypatch.setattr("tabnsm.cli.predict.LOG_SECONDS", -1.0)
    where = [str(data / "folder.safetensors"), str(data / "data"), "--batch-rows", "70"]
    assert main(["predict", *where, "--out", str(data / "again.parquet")]) == 0
    lines = ["Predicting: 70 of 120 rows", "Predicting: 120 of 120 rows"]
    assert capsys.readouterr().err.splitlines()[-2:] == lines
    assert read_table(data / "again.parquet").equals(outputs[0].select(["prediction"]))


def test_what_is_wrong_with_a_folder(data, capsys):
    (data / "none").mkdir()
    assert fit(data, "none", "m.safetensors") != 0
    assert "is an empty folder" in capsys.readouterr().err
    pd.DataFrame({"id": [1]}).to_parquet(data / "data" / "c.parquet")
    assert fit(data, "data", "m.safetensors") != 0
    assert "must have the same columns" in capsys.readouterr().err


def test_a_work_dir_needs_files_that_are_read_by_column(data, capsys, monkeypatch):
    (data / "t.csv").write_text("id,weight,size,price\n1,1,2,3\n")
    monkeypatch.setattr("tabnsm.cli.fit.read_rows", None)  # the file is not read
    assert fit(data, "t.csv", "m.safetensors", "--work-dir", str(data / "work")) == 2
    message = capsys.readouterr().err
    assert "--work-dir is for Parquet and Arrow files" in message
    assert "Write the table as Parquet" in message
