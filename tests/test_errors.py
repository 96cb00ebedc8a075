"""Warnings point at the line of the user, however deep in the package they arise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline

from tabnsm import TabNSMRegressor, TabNSMWarning
from tabnsm.errors import warn
from tabnsm.files import open_table
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")

WORDS = [f"a note of some length {k}" for k in range(40)]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.normal(size=80),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 80),
            "day": pd.date_range("2024-01-01", periods=80).strftime("%Y-%m-%d"),
        }
    )


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TabNSMRegressor:
    return quick().fit(frame, frame["number"] ** 2 + (frame["city"] == "Oslo"))


def quick(**options: Any) -> TabNSMRegressor:
    return TabNSMRegressor(max_epochs=1, d_token=8, random_state=0, **options)


def warned_here(call: Any, message: str, category: type[Warning] = TabNSMWarning) -> None:
    """The call warns like this, once, and the line that is named is one of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    matching = [w for w in caught if message in str(w.message)]
    assert len(matching) == 1, [str(w.message) for w in caught]
    assert issubclass(matching[0].category, category)
    assert matching[0].filename == __file__


def test_warn_names_the_caller_outside_the_package() -> None:
    warned_here(lambda: warn("look here"), "look here")
    warned_here(lambda: warn("look here", DeprecationWarning), "look here", DeprecationWarning)


def test_a_call_through_scikit_learn_is_the_users(
    model: TabNSMRegressor, frame: pd.DataFrame
) -> None:
    far = frame.assign(number=1e9)
    warned_here(lambda: model.predict(far), "far outside the range")
    warned_here(lambda: model.score(far, frame["number"]), "far outside the range")
    pipeline = make_pipeline(model)
    warned_here(lambda: pipeline.predict(far), "far outside the range")


def test_warnings_of_predict(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    words = frame.astype({"number": object})
    words.loc[3, "number"] = "none of them"
    warned_here(lambda: model.predict(words), "such as 'none of them'")
    days = frame.copy()
    days.loc[3, "day"] = "not a day"
    warned_here(lambda: model.predict(days), "such as 'not a day'")
    warned_here(lambda: model.explain(days), "such as 'not a day'")


def test_warnings_of_fit(frame: pd.DataFrame) -> None:
    y = frame["number"] ** 2
    warned_here(lambda: quick().fit(frame.assign(copy=y), y), "alone predicts the target")
    column = y.to_numpy()[:, None]
    warned_here(lambda: quick().fit(frame, column), "column-vector y", DataConversionWarning)
    text = frame.assign(note=WORDS * 2)
    short = FakeTextEncoder(5, max_chars=10)
    kinds = {"note": "text"}
    model = quick(text_encoder=short, column_kinds=kinds)
    warned_here(lambda: model.fit(text, y), "longer than the text encoder")


def test_warnings_of_the_text_cache(
    frame: pd.DataFrame, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, y = frame.assign(note=WORDS * 2), frame["number"] ** 2
    model = quick(text_encoder=FakeTextEncoder(5), column_kinds={"note": "text"})
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TABNSM_CACHE", str(tmp_path / "file"))
    warned_here(lambda: model.fit(text, y), "cannot be used")
    monkeypatch.setenv("TABNSM_CACHE", str(tmp_path))
    from tabnsm.text.cache_file import cache_path

    cache_path().parent.mkdir(exist_ok=True)
    cache_path().write_bytes(b"no database" * 1000)
    warned_here(lambda: model.fit(text, y), "was damaged")


def test_warnings_of_files(tmp_path: Any) -> None:
    (tmp_path / "latin.csv").write_bytes("a,b\nä,1\n".encode("latin-1"))
    warned_here(lambda: open_table(tmp_path / "latin.csv"), "is not UTF-8")
    (tmp_path / "blank.csv").write_text("a,\n1,2\n")
    warned_here(lambda: open_table(tmp_path / "blank.csv"), "without a name")
