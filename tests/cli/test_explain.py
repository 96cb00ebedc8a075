from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main

pytestmark = pytest.mark.usefixtures("one_network")

N_ROWS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a column named like the output's own, and a model of it."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 3)).round(3), columns=["a", "b", "prediction"])
    frame["shop"] = rng.choice(["north", "south"], N_ROWS)
    target = frame["a"] * frame["b"]
    options: dict[str, Any] = {"max_epochs": 1, "d_token": 8, "head_width": 8, "random_state": 0}
    TabNSMRegressor(**options).fit(frame, target).save(folder / "model.safetensors")
    frame.assign(id=[f"NA{k}" for k in range(N_ROWS)]).to_csv(folder / "data.csv", index=False)
    return folder


def explain(folder: Path, *options: str) -> int:
    return main(["explain", str(folder / "model.safetensors"), str(folder / "data.csv"), *options])


FILES = {"attributions.csv", "contributions.csv", "columns.csv"} | {
    f"{stem}.{kind}" for stem in ("heatmap", "importance") for kind in ("png", "svg")
}


@pytest.mark.slow
@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_writes_the_explanation_of_the_estimator(
    folder: Path, tmp_path: Path, batch_rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "why" / "now"
    options = ["--id", "id", "--batch-rows", str(batch_rows), "--rows", "20", "--top", "2"]
    assert explain(folder, "--out", str(out), *options) == 0
    assert {path.name for path in out.iterdir()} == FILES
    model = TabNSMRegressor.load(folder / "model.safetensors")
    expected = model.explain(pd.read_csv(folder / "data.csv"))
    written = pd.read_csv(out / "attributions.csv", keep_default_na=False)
    assert list(written.columns) == ["id", "prediction", "a", "b", "prediction_", "shop"]
    assert written["id"].tolist() == [f"NA{k}" for k in range(N_ROWS)]
    np.testing.assert_allclose(written["prediction"], expected.predictions, rtol=1e-6)
    np.testing.assert_allclose(written.iloc[:, 2:], expected.attributions, atol=1e-5)
    parts = pd.read_csv(out / "contributions.csv", keep_default_na=False)
    assert list(parts.columns[:3]) == ["id", "prediction", "base_value"]
    total = parts["base_value"] + parts.iloc[:, 3:].sum(axis=1)
    np.testing.assert_allclose(total, expected.predictions, rtol=1e-5, atol=1e-5)
    columns = pd.read_csv(out / "columns.csv").set_index("column")
    assert columns["importance"].is_monotonic_decreasing
    importance = dict(zip(expected.columns, expected.importance, strict=True))
    assert columns["importance"].to_dict() == pytest.approx(importance, rel=1e-4)
    assert (columns["foreground"] == 1).all()  # a single block, which every query selects
    shown = capsys.readouterr().out
    assert "share of the attribution" in shown
    assert "heatmap.png" in shown


@pytest.mark.slow
def test_quiet_and_the_other_methods(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gradient = ["-q", "--method", "gradient"]
    assert explain(folder, "-o", str(tmp_path / "zero"), *gradient) == 0
    options = [*gradient, "--baseline", "average"]
    assert explain(folder, "-o", str(tmp_path / "average"), *options) == 0
    assert {path.name for path in (tmp_path / "zero").iterdir()} == FILES - {"contributions.csv"}
    assert capsys.readouterr().out == ""
    zero, average = (
        pd.read_csv(tmp_path / name / "attributions.csv") for name in ("zero", "average")
    )
    assert not np.allclose(zero["a"], average["a"])


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--help"]) == 0
    assert "tabnsm explain price.safetensors" in capsys.readouterr().out.split("Examples")[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top", "0"], "--top must be >= 1, got 0"),
        (["--rows", "-1"], "--rows must be >= 1, got -1"),
        (["--batch-rows", "0"], "--batch-rows must be >= 1, got 0"),
        (["--id", "Id"], "Did you mean 'id'"),
        (["--baseline", "mean"], "--baseline must be one of ('zero', 'average'), got 'mean'"),
        (["--baseline", "zero"], "--baseline zero must come with --method gradient"),
        (["--method", "shap"], "--method must be one of ('integrated', 'gradient'), got 'shap'"),
    ],
)
def test_refuses_in_one_line(
    folder: Path,
    tmp_path: Path,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explain(folder, "--out", str(tmp_path / "why"), *options) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not (tmp_path / "why").exists()


def test_out_must_be_a_folder(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "why").write_text("")
    assert explain(folder, "--out", str(tmp_path / "why")) == 2
    assert "--out must be a folder" in capsys.readouterr().err


def test_a_missing_extra_is_named_before_any_work(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real_import = builtins.__import__

    def no_matplotlib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    assert explain(folder, "--out", str(tmp_path / "why")) == 2
    assert 'pip install "tabnsm[plot]"' in capsys.readouterr().err
    assert not (tmp_path / "why").exists()
