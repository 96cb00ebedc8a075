"""Intervals and quantiles on the command line."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tabnsm import TabNSMRegressor
from tabnsm.cli import intervals
from tabnsm.cli.app import app

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intervals")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(240, 3)), columns=["a", "b", "c"])
    table["cost"] = table["a"] + rng.normal(size=240)
    table["time"] = table["b"] + rng.normal(size=240)
    table.to_csv(folder / "rows.csv", index=False)
    X, options = table[["a", "b", "c"]], {"preset": "fast", "max_epochs": 2, "random_state": 0}
    TabNSMRegressor(**options).fit(X, table["cost"]).save(folder / "one.safetensors")
    TabNSMRegressor(**options).fit(X, table[["cost", "time"]]).save(folder / "two.safetensors")
    return folder


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_predict_adds_columns(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    options = ("--interval", 0.9, "--quantiles", "0.25,0.5", "--batch-rows", 100, "--out", out)
    run("predict", made / "one.safetensors", made / "rows.csv", *options)
    found = pd.read_csv(out)
    assert list(found) == ["prediction", "lower", "upper", "quantile_0.25", "quantile_0.5"]
    model = TabNSMRegressor.load(made / "one.safetensors")
    points, intervals = model.predict_interval(pd.read_csv(made / "rows.csv"))
    np.testing.assert_allclose(found["prediction"], points)
    np.testing.assert_allclose(found[["lower", "upper"]], intervals)
    run("predict", made / "two.safetensors", made / "rows.csv", "--interval", 0.5, "--out", out)
    names = ["prediction", "lower", "upper"]
    assert list(pd.read_csv(out)) == [f"{name}_{of}" for of in ("cost", "time") for name in names]


def test_evaluate_reports_coverage(made: Path) -> None:
    words = ("evaluate", made / "one.safetensors", made / "rows.csv", "--target", "cost")
    found = json.loads(run(*words, "--json"))["intervals"]
    assert [entry["level"] for entry in found] == [0.5, 0.8, 0.9]  # 24 rows do not give 0.95
    rows = pd.read_csv(made / "rows.csv")
    low, high = TabNSMRegressor.load(made / "one.safetensors").predict_interval(rows, 0.8)[1].T
    assert found[1]["coverage"] == pytest.approx(rows["cost"].between(low, high).mean())
    assert found[1]["mean_width"] == pytest.approx((high - low).mean())
    assert "in 80% intervals" in run(*words)
    several = ("evaluate", made / "two.safetensors", made / "rows.csv")
    targets = json.loads(run(*several, "--json"))["targets"]
    assert len(targets["time"]["intervals"]) == 3
    assert "in 90%" in run(*several)


def test_evaluate_keeps_no_intervals(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many levels as would need 40 MB for all rows."""
    n_levels = 10_000
    monkeypatch.setattr(intervals, "reached_levels", lambda _: [0.5] * n_levels)
    bounds = np.repeat([-1.0, 1.0], n_levels)
    monkeypatch.setattr(
        intervals, "predict_all", lambda _, X, __: np.tile(np.r_[0.0, bounds], (len(X), 1, 1))
    )
    rows = pd.read_csv(made / "rows.csv")
    model = TabNSMRegressor.load(made / "one.safetensors")
    batches = (rows[start : start + 10] for start in range(0, 240, 10))
    tracemalloc.start()
    prediction, scores = intervals.predict_and_score(model, batches, rows[["cost"]].to_numpy(), [0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e7
    assert prediction.shape == (240, 1)
    covered = rows["cost"].between(-1, 1).mean()
    assert scores[0].result()[7] == {"level": 0.5, "coverage": covered, "mean_width": 2.0}


def test_batches_do_not_change_an_evaluation(made: Path) -> None:
    for words in (("one.safetensors", "cost"), ("two.safetensors", "time,cost")):
        command = ("evaluate", made / words[0], made / "rows.csv", "-t", words[1], "--json")
        whole, batches = run(*command), run(*command, "--batch-rows", 7)
        pairs = zip(_numbers(json.loads(whole)), _numbers(json.loads(batches)), strict=True)
        for one, other in pairs:
            assert one == pytest.approx(other, rel=1e-12)


def _numbers(found: object) -> list[float]:
    """All numbers of what JSON holds."""
    if isinstance(found, dict | list):
        inside = found.values() if isinstance(found, dict) else found
        return [number for entry in inside for number in _numbers(entry)]
    assert isinstance(found, int | float)
    return [found]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--interval", "90"), "--interval must be between 0 and 1"),
        (("--interval", "0.99"), "With 24 calibration rows"),
        (("--quantiles", "0.1,x"), "--quantiles must be different numbers"),
        (("--quantiles", "0.1,0.1"), "--quantiles must be different numbers"),
        (("--interval", "0.9", "--id", "lower"), "--id must"),
    ],
)
def test_refused(made: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    out = tmp_path / "p.csv"
    command = ["predict", str(made / "one.safetensors"), str(made / "rows.csv"), "--out", str(out)]
    result = CliRunner().invoke(app, [*command, *words])
    assert result.exit_code != 0
    said = f"{result.output} {result.exception}"
    assert message in " ".join(said.split())
    assert not out.exists()
