"""Modules that scikit-learn names but does not need are imported when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tabnsm.sklearn_base import deferred


def forget(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_module_that_is_only_named_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "colorsys")
    with deferred("colorsys", "no_such_module_at_all"):
        import colorsys
    assert "colorsys" not in sys.modules
    assert "no_such_module_at_all" not in sys.modules
    # What the block bound works all the same, and is the module that everybody else has.
    assert colorsys.ONE_THIRD == 1 / 3
    assert sys.modules["colorsys"].ONE_THIRD == 1 / 3


def test_a_name_that_is_imported_is_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    forget(monkeypatch, "colorsys")
    with deferred("colorsys"):
        from colorsys import hsv_to_rgb
    assert sys.modules["colorsys"].hsv_to_rgb is hsv_to_rgb


def test_a_module_that_is_there_stays() -> None:
    import json

    with deferred("json"):
        assert sys.modules["json"] is json
    assert sys.modules["json"] is json


@pytest.mark.slow
def test_scikit_learn_works_without_them() -> None:
    code = """
import sys
import tabnsm.sklearn_base
assert not {"pandas", "scipy.stats"} & set(sys.modules)
import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.utils.fixes import _mode
assert _mode(np.array([1, 2, 2]))[0] == 2
import pandas as pd
import scipy.stats
assert scipy.stats.norm.cdf(0) == 0.5
from sklearn.linear_model import Ridge
X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
assert list(Ridge().fit(X, X["a"]).feature_names_in_) == ["a"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
