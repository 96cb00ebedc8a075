from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor, TabNSMWarning
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.unseen import UnseenValues, describe_unseen, find_unseen
from tabnsm.tables.column import Column
from tabnsm.tables.objects import from_objects

pytestmark = pytest.mark.usefixtures("one_network")


def unseen(values: list[Any], vocabulary: tuple[str, ...]) -> UnseenValues | None:
    column = Column("c", from_objects("c", values))
    return find_unseen(
        column, column.to_factor(), ColumnSpec(0, "c", "category", vocabulary=vocabulary)
    )


@pytest.mark.parametrize(
    ("values", "vocabulary", "hint"),
    [
        (["oslo", "rome"], ("Oslo", "Rome"), "differs from 'Oslo' in case or blanks"),
        (["Oslo ", " Rome"], ("Oslo", "Rome"), "differs from 'Oslo' in case or blanks"),
        ([1, 2], ("a", "b"), "numbers, where the training rows have strings such as 'a'"),
        ([1, 2], ("01", "02"), "'1' is '01' written in another way"),
        (["1.0", "2.0"], ("1", "2"), "'1.0' is '1' written in another way"),
        ([7, 8], ("1", "2"), ""),
        (["Paris", "Bonn"], ("Oslo", "Rome"), ""),
    ],
)
def test_the_hint_says_how_they_differ(
    values: list[Any], vocabulary: tuple[str, ...], hint: str
) -> None:
    found = unseen(values, vocabulary)
    assert found is not None
    assert (found.share, found.hint) == (1.0, hint)


def test_half_of_the_present_values_may_be_new() -> None:
    assert unseen(["a", "new", None, None], ("a",)) is None
    assert unseen([None, None], ("a",)) is None
    assert unseen(["a", "a"], ("a", "b")) is None
    found = unseen(["a", "x", "y", "y", "z", "z", "z", "w", None], ("a",))
    assert found == UnseenValues("c", 7 / 8, ("z", "y", "x"), "")


def test_the_message_counts_further_columns_and_never_rounds_to_all() -> None:
    columns = [UnseenValues(f"c{k}", 0.99999, ("x",), "") for k in range(7)]
    message = describe_unseen(columns)
    assert "'c4' are not in the training rows: 99.9 %" in message
    assert "and of 2 more column(s)" in message
    assert "'c5'" not in message


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=80),
            "city": rng.choice(["Oslo", "Rome", "Lima"], 80),
            "zip": rng.choice(["01", "02", "03"], 80),
        }
    )


@pytest.fixture(scope="module", params=["default", "paper"])
def model(request: pytest.FixtureRequest, frame: pd.DataFrame) -> TabNSMRegressor:
    options = {"max_epochs": 1, "d_token": 8, "random_state": 0, "preset": request.param}
    y = frame["size"] + (frame["city"] == "Oslo")
    return TabNSMRegressor(column_kinds={"zip": "category"}, **options).fit(frame, y)


def test_one_warning_for_all_columns(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    other = frame.assign(city=frame["city"].str.upper() + " ", zip=frame["zip"].astype(int))
    for call in (model.predict, model.explain):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(other)
        (warning,) = caught
        assert warning.category is TabNSMWarning
        assert warning.filename == __file__
        message = str(warning.message)
        assert "'city' are not in the training rows: 100 %, such as" in message
        assert "in case or blanks" in message
        assert "'zip' are not in the training rows: 100 %" in message
        assert "written in another way" in message


def test_known_values_and_some_new_ones_do_not_warn(
    model: TabNSMRegressor, frame: pd.DataFrame
) -> None:
    some = frame.copy()
    some.loc[:30, "city"] = "Paris"
    some.loc[31:40, "city"] = None
    assert np.isfinite(model.predict(some)).all()
    assert len(model.predict(frame[:0])) == 0
