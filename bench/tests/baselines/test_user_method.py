from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines.catalog import BASELINES, make
from tabnsm_bench.protocol import Prepared

CODE = """
import numpy as np

class Nearest:
    def __init__(self, k=1):
        self.k = k
    def get_params(self, deep=True):
        return {"k": self.k}
    def fit(self, X, y):
        self.X, self.y = X, y
    def predict(self, X):
        distance = ((X[:, None] - self.X) ** 2).sum(axis=2)
        return self.y[distance.argsort(axis=1)[:, : self.k]].mean(axis=1)

class Whole:
    takes_frames = True
    def fit(self, data, *, seed, time_limit, n_threads):
        return {"columns": list(data.train_frame)}
"""


@pytest.fixture
def user_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "user_methods.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("user_methods", None)


def predictions(method: Any, data: Prepared) -> np.ndarray:
    method.fit(data, seed=0, time_limit=None, n_threads=1)
    return np.asarray(method.predict(data.test.x, None))


@pytest.mark.usefixtures("user_code")
def test_a_baseline_can_be_the_users_code(monkeypatch: pytest.MonkeyPatch, mixed: Prepared) -> None:
    monkeypatch.setenv("TABNSM_METHOD_DNNR", "user_methods:Nearest")
    assert BASELINES["dnnr"].state == "ready"
    found = predictions(make("dnnr", {"k": 5, "max_epochs": 3}), mixed)
    np.testing.assert_allclose(found, predictions(make("knn-5"), mixed))
    monkeypatch.setenv("TABNSM_METHOD_DNNR", "user_methods:Whole")
    assert make("dnnr").takes_frames
    monkeypatch.setenv("TABNSM_METHOD_DNNR", "user_methods:Missing")
    with pytest.raises(InvalidOptionError, match="TABNSM_METHOD_DNNR must be module:factory"):
        make("dnnr")
