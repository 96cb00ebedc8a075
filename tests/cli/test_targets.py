from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.cli import main
from tabnsm.cli.targets import split_names
from tabnsm.metrics import target_metrics

pytestmark = pytest.mark.usefixtures("one_network")
TARGETS = ["p", "q,r"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two targets, one of them with gaps, and a model that the command fitted."""
    folder = tmp_path_factory.mktemp("targets")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)).round(3), columns=list("abc"))
    frame["p"], frame["q,r"] = frame["a"] * 2, 100 * frame["b"] * frame["c"]
    frame.loc[3:9, "q,r"] = np.nan
    frame.loc[5, "p"] = np.nan
    frame["id"] = range(80)
    frame.to_csv(folder / "data.csv", index=False)
    model = str(folder / "model.safetensors")
    options = ["--epochs", "2", "--preset", "fast", "--drop", "id", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tabnsm.training.config.MAX_NETWORKS", 1)
        arguments = ["fit", str(folder / "data.csv"), "-t", 'p,"q,r"', "-o", model]
        assert main([*arguments, *options]) == 0
    return folder


def test_predictions_have_a_column_per_target(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "predictions.csv"
    arguments = [str(folder / "model.safetensors"), str(folder / "data.csv"), "-o", str(out)]
    assert main(["predict", *arguments, "--id", "id", "--id", "p"]) == 0
    written = pd.read_csv(out)
    assert list(written.columns) == ["id", "p", "prediction_p", "prediction_q,r"]
    model = TabNSMRegressor.load(folder / "model.safetensors")
    expected = model.predict(pd.read_csv(folder / "data.csv"))
    np.testing.assert_allclose(written.iloc[:, 2:], expected, rtol=1e-6)
    assert main(["predict", *arguments, "--target", "q,r"]) == 0
    assert list(pd.read_csv(out).columns) == ["prediction_q,r"]


def test_evaluate_each_target(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", str(folder / "model.safetensors"), str(folder / "data.csv")]
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    frame = pd.read_csv(folder / "data.csv")
    model = TabNSMRegressor.load(folder / "model.safetensors")
    expected = target_metrics(frame[TARGETS], model.predict(frame), names=TARGETS)
    for each in shown["targets"].values():
        assert each.pop("intervals")
    assert shown["targets"] == expected
    assert (shown["n_rows"], shown["n_without_target"]) == (79, 1)
    assert shown["mean"]["r2"] == pytest.approx(model.score(frame, frame[TARGETS]))
    assert main(arguments) == 0
    assert "mean" in capsys.readouterr().out
    assert main([*arguments, "--target", "q,r", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rmse"] == expected["q,r"]["rmse"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "--target", "z"], "--target must name targets of the model, 'p', 'q,r', got"),
        (["evaluate", "--target", "a"], "--target must name targets of the model"),
        (["evaluate", "--target", "p,p"], "--target must be different names"),
        (["explain", "--out", "why"], "--target must name one of the model's targets, 'p', 'q,r'"),
        (["explain", "--out", "why", "-t", "z"], "got 'z'. Explain each of them"),
    ],
)
def test_wrong_targets(
    folder: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *options = arguments
    files = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    assert main([command, *files, *options]) == 2
    assert message in capsys.readouterr().err


def test_explain_one_target(folder: Path, tmp_path: Path) -> None:
    files = [str(folder / "model.safetensors"), str(folder / "data.csv")]
    assert main(["explain", *files, "-o", str(tmp_path), "-t", "q,r", "--quiet"]) == 0
    written = pd.read_csv(tmp_path / "attributions.csv")
    model = TabNSMRegressor.load(files[0])
    expected = model.predict(pd.read_csv(files[1]))[:, 1]
    np.testing.assert_allclose(written["prediction"], expected, rtol=1e-5)


def test_info_lists_the_targets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder / "model.safetensors"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == TARGETS
    assert main(["info", str(folder / "model.safetensors")]) == 0
    assert "targets: p, q,r" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a,,b", "a,a", "", " ,a"])
def test_names_that_are_no_list(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="different names with commas between"):
        split_names(text)
