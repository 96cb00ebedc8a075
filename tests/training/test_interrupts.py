"""Ctrl-C ends a fit with its best model, or the whole call that fits many times."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tabnsm.training.interrupts import is_one_of_many_fits

pytestmark = pytest.mark.usefixtures("one_network")

SCRIPT = """
import sys, warnings
import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tabnsm import TabNSMRegressor

X = np.random.default_rng(0).normal(size=(300, 4))
y = X[:, 0] * X[:, 1]
model = TabNSMRegressor(max_epochs=10**6, patience=10**6, d_token=8, head_width=8, n_ensemble=1,
                        verbose=2, random_state=0)
kind, n_jobs = sys.argv[1], int(sys.argv[2])
try:
    if kind == "folds":
        cross_val_score(model, X, y, cv=3, n_jobs=n_jobs)
    elif kind == "grid":
        GridSearchCV(model, {"window_size": [2, 4]}, cv=2, n_jobs=n_jobs).fit(X, y)
    else:
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        print("KEPT", pipeline[-1].history_.stop_reason, len(pipeline.predict(X)))
except KeyboardInterrupt:
    print("STOPPED")
else:
    print("WENT ON")
"""


def interrupted(tmp_path: Path, *arguments: str) -> tuple[str, str]:
    """Output and errors of a script that gets Ctrl-C, as a terminal sends it, in epoch 3."""
    (tmp_path / "script.py").write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "epoch   3" in line:
                break
        os.killpg(process.pid, signal.SIGINT)
        return process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process groups on this system")
@pytest.mark.parametrize("kind", ["folds", "grid"])
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_ctrl_c_ends_a_call_that_fits_many_times(tmp_path: Path, kind: str, n_jobs: str) -> None:
    out, _ = interrupted(tmp_path, kind, n_jobs)
    assert out == "STOPPED\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no process groups on this system")
def test_ctrl_c_in_a_pipeline_keeps_the_model_and_points_at_the_users_line(tmp_path: Path) -> None:
    out, errors = interrupted(tmp_path, "pipeline", "1")
    assert out == "KEPT interrupted 300\nWENT ON\n"
    assert errors.count("Training was interrupted in epoch") == 1
    # The line of the script, not one of the package's or scikit-learn's.
    assert re.search(r"script\.py:\d+: TabNSMWarning: Training was .*\n +pipeline = make_", errors)


class Asked(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Says of every fit whether it is one of many."""

    answers: list[bool] = []  # noqa: RUF012

    def __init__(self, a: int = 0) -> None:
        self.a = a

    def fit(self, X: Any, y: Any) -> Asked:
        self.answers.append(is_one_of_many_fits())
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.zeros(len(X))


def test_who_fits_many_times() -> None:
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    single = [
        Asked(),
        make_pipeline(StandardScaler(), Asked()),
        TransformedTargetRegressor(Asked()),
    ]
    many = [BaggingRegressor(Asked(), 2), GridSearchCV(Asked(), {"a": [1]}, cv=2)]
    for expected, estimators in ((False, single), (True, many)):
        for estimator in estimators:
            Asked.answers.clear()
            estimator.fit(X, y)
            assert set(Asked.answers) == {expected}, estimator
    Asked.answers.clear()
    cross_val_score(Asked(), X, y, cv=2)
    MultiOutputRegressor(Asked()).fit(X, np.stack([y, y], axis=1))
    assert Asked.answers == [True] * 4
