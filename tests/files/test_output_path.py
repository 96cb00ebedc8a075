"""Outputs are files of their own, whatever the path looks like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tabnsm.errors import InvalidDataError, InvalidOptionError, TabNSMWarning
from tabnsm.files.output_path import (
    check_model_output,
    check_not_read,
    check_output,
    is_same_file,
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "d.csv"
    path.write_text("a\n1\n")
    (tmp_path / "symbolic.csv").symlink_to("d.csv")
    os.link(path, tmp_path / "hard.csv")
    (tmp_path / "folder").symlink_to(tmp_path)
    return path


@pytest.mark.parametrize(
    "spelling", ["d.csv", "./d.csv", "../{here}/d.csv", "folder/d.csv", "symbolic.csv", "hard.csv"]
)
def test_one_file_has_many_names(data: Path, spelling: str) -> None:
    spelling = spelling.format(here=data.parent.name)
    for first, second in ((data, spelling), (spelling, data), (Path(spelling), str(data))):
        assert is_same_file(first, second)
        with pytest.raises(InvalidOptionError, match=r"--out must be a file of its own.*same file"):
            check_not_read(first, {"--config": None, "DATA": second})


def test_other_files_are_others(data: Path) -> None:
    (data.parent / "copy.csv").write_text(data.read_text())
    for other in ("copy.csv", "new.csv", "folder", "no/folder/d.csv"):
        assert not is_same_file(data, other)
        check_not_read(other, {"DATA": data, "MODEL": None})


@pytest.mark.parametrize(
    ("dataset", "out"),
    [
        ("f", "f/pred.parquet"),
        ("f", "f/year=2024/pred.FEATHER"),
        ("f", "link/pred.arrow"),
        (".", "pred.parquet"),
        ("f/*.parquet", "f/pred.parquet"),
        ("folder/f/*.parquet", "f/pred.parquet"),
        ("**/*.parquet", "f/year=2024/pred.parquet"),
        ("f/**", "f/pred.parquet"),
    ],
)
def test_an_output_is_no_file_of_a_dataset(data: Path, dataset: str, out: str) -> None:
    (data.parent / "f" / "year=2024").mkdir(parents=True)
    (data.parent / "link").symlink_to("f")
    with pytest.raises(InvalidOptionError, match=r"--out must not be a file of a dataset.*DATA"):
        check_not_read(out, {"DATA": dataset})


@pytest.mark.parametrize(
    ("dataset", "out"),
    [
        ("f", "pred.parquet"),
        ("f", "f/pred.csv"),
        ("f", "f/_pred.parquet"),
        ("f/*.parquet", "f/pred.feather"),
        ("f/*.parquet", "f/year=2024/pred.parquet"),
        ("f/[0-9]*.parquet", "f/pred.parquet"),
        ("d.csv", "pred.parquet"),
    ],
)
def test_an_output_beside_a_dataset(data: Path, dataset: str, out: str) -> None:
    (data.parent / "f" / "year=2024").mkdir(parents=True)
    check_not_read(out, {"DATA": dataset})


def test_two_files_to_be(data: Path) -> None:
    (data.parent / "dangling.json").symlink_to("best.json")
    assert is_same_file("best.json", "./best.json")
    assert is_same_file("best.json", "dangling.json")
    # They would be one where the file system ignores case.
    assert is_same_file("best.json", data.parent / "Best.JSON")
    assert not is_same_file("best.json", "best.journal")


@pytest.mark.parametrize(
    "name", ["m.csv", "M.CSV", "m.tsv.gz", "m.csv.bz2", "m.parquet", "m.jsonl", "m.xlsx", "m.json"]
)
def test_a_model_has_no_other_kinds_ending(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"ends in \.safetensors, got .*is the name of a"):
        check_model_output(tmp_path / name)


def test_unknown_endings_of_a_model_are_warned_of(tmp_path: Path) -> None:
    check_model_output(tmp_path / "m.safetensors")
    for name in ("m.bin", "model", "csv"):
        with pytest.warns(TabNSMWarning, match=f"{name} does not end in .safetensors") as caught:
            check_model_output(tmp_path / name)
        assert len(caught) == 1


def test_a_device_is_no_output() -> None:
    with pytest.raises(InvalidDataError, match="must be a regular file, but /dev/null"):
        check_output("/dev/null")
