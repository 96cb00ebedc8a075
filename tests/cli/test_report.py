from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.errors import InvalidDataError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["price"] = frame["a"] * frame["b"]
    small = {"max_epochs": 1, "d_token": 8, "head_width": 8, "random_state": 0, "n_ensemble": 1}
    TabNSMRegressor(**small).fit(frame[["a", "b"]], frame["price"]).save(folder / "m.safetensors")
    frame[:40].to_csv(folder / "data.csv", index=False)
    frame[40:].to_csv(folder / "old.csv", index=False)
    frame[:40].assign(more=1).to_csv(folder / "more.csv", index=False)
    return folder


def report(folder: Path, data: str, *options: str) -> int:
    return main(["report", str(folder / "m.safetensors"), str(folder / data), *options])


@pytest.mark.slow
def test_writes_a_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert report(folder, "data.csv", "--out", str(out)) == 0
    assert str(out) in capsys.readouterr().err.replace("\n", "")
    page = out.read_text()
    assert "<title>price: TabNSM report</title>" in page
    assert "5-fold cross-validation" in page
    options = ["--target", "price", "--train", str(folder / "old.csv"), "--max-rows", "30", "-q"]
    assert report(folder, "more.csv", "-o", str(out), *options) == 0
    assert capsys.readouterr().err == ""
    assert "20 rows that were given as training rows" in out.read_text()
    assert '"rows":{"used":30,"given":40,"known":40' in out.read_text()


@pytest.mark.parametrize(
    ("out", "problem"), [(".", "is a folder"), ("missing/r.html", "no folder missing")]
)
def test_output_is_checked_before_any_work(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    out: str,
    problem: str,
) -> None:
    monkeypatch.setattr("tabnsm.report.build_report", None)
    monkeypatch.chdir(folder)
    assert report(folder, "data.csv", "--out", out) == 2
    assert problem in capsys.readouterr().err.replace("\n", " ")
    model = TabNSMRegressor.load(folder / "m.safetensors")
    with pytest.raises(InvalidDataError, match=problem):
        model.report(pd.DataFrame(), [], out)


@pytest.mark.slow
def test_several_targets(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv(folder / "data.csv").assign(area=lambda rows: rows["b"] + rows["a"])
    frame.to_csv(tmp_path / "two.csv", index=False)
    model, data, out = (str(tmp_path / name) for name in ("m.safetensors", "two.csv", "r.html"))
    small = ["--preset", "fast", "--epochs", "1", "-q"]
    assert main(["fit", data, "--target", "price,area", "--out", model, *small]) == 0
    assert main(["report", model, data, "--out", out]) == 0
    assert "<title>price, area: TabNSM report</title>" in Path(out).read_text()
    train = ["--target", "area", "--train", data]
    assert main(["report", model, data, "--out", out, *train]) == 0
    assert "<title>area: TabNSM report</title>" in Path(out).read_text()
    capsys.readouterr()
    assert main(["report", model, data, "--out", out, "--target", "a"]) == 2
    assert "--target must name targets of the model, 'price', 'area'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("data.csv", ["--max-rows", "1"], "--max-rows must be >= 2, got 1"),
        ("data.csv", ["--target", "prices"], "Did you mean 'price'"),
        ("more.csv", [], "--target must name the column(s) with the true values"),
    ],
)
def test_refuses_in_one_line(
    folder: Path,
    tmp_path: Path,
    data: str,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "report.html"
    assert report(folder, data, "--out", str(out), *options) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not out.exists()


def test_inputs_are_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(folder, "data.csv", "--out", str(folder / "data.csv")) == 2
    assert "Error" in capsys.readouterr().err
