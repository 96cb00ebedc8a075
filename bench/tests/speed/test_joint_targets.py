"""The study of joint and separate targets at a tiny size, and its page."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

BENCH = Path(__file__).resolve().parents[2]


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH / "speed"))
    return importlib.import_module("joint_targets")


@pytest.mark.slow
def test_both_sides_are_measured_on_the_same_rows(study: ModuleType) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, 3)), columns=list("abc"))
    Y = pd.DataFrame({"p": X["a"] * X["b"], "q": X["c"] ** 2 + X["a"]})
    run = study.compare(X, Y, 0, preset="fast", d_token=8)
    assert set(run["standardized_rmse"]["joint"]) == {"p", "q"}
    for side in study.SIDES:
        each = run["standardized_rmse"][side]
        assert run["mean_standardized_rmse"][side] == pytest.approx((each["p"] + each["q"]) / 2)
        assert run["cpu_seconds"][side] > 0
    assert (len(run["epochs"]["joint"]), len(run["epochs"]["separate"])) == (1, 2)


def test_the_page_has_the_committed_results(study: ModuleType) -> None:
    table = study.markdown(study.RESULTS)
    assert len(table.splitlines()) >= 5  # three tables
    assert table in study.PAGE.read_text()
