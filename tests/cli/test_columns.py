from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tabnsm.cli.columns import group_values, number_values, time_values
from tabnsm.errors import InvalidDataError, TabNSMWarning


def table(values: list[str | None]) -> pa.Table:
    return pa.table({"c": values})


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "2.5", None], [1, 2.5, np.nan]),
        (["$1,200", "5", "?"], [1200, 5, np.nan]),
        (["1.200,5", "7,25", "unknown"], [1200.5, 7.25, np.nan]),
        (["007", "008", None], [7, 8, np.nan]),
    ],
)
def test_numbers_in_any_format(values, numbers):
    np.testing.assert_array_equal(number_values(table(values), "c", "--weight"), numbers)
    np.testing.assert_array_equal(time_values(table(values), "c"), numbers)


def test_strings_are_refused():
    with pytest.raises(InvalidDataError, match=r"--weight must name a column of numbers.*'heavy'"):
        number_values(table(["1", "heavy"]), "c", "--weight")
    with pytest.raises(InvalidDataError, match=r"--time must name a column of numbers or dates"):
        time_values(table(["soon", "later"]), "c")
    days = [f"2020-01-{day:02d}" for day in range(1, 32)] * 2
    with pytest.raises(InvalidDataError, match=r"--time must name a column.*'c' has 'soon'"):
        time_values(table([*days, "soon"]), "c")
    dates = pa.table({"c": np.array(["2020-01-01"], dtype="datetime64[us]")})
    with pytest.raises(InvalidDataError, match="'c' has dates"):
        number_values(dates, "c", "--weight")


def test_times_in_several_formats_are_in_order():
    times = time_values(table(["29 Aug 2011", "2011-08-30", "31/08/2011", "?", None]), "c")
    assert (np.diff(times[:3]) == 86_400_000_000).all()
    assert np.isnan(times[3:]).all()


def test_ambiguous_times_are_reported():
    with pytest.warns(TabNSMWarning, match="'01/02/2020' is read with the month first"):
        times = time_values(table(["01/02/2020", "01/03/2020"]), "c")
    assert np.diff(times) == 86_400_000_000


def test_groups_are_left_as_they_are():
    assert group_values(table(["a", None, "01"]), "c").tolist() == ["a", None, "01"]
