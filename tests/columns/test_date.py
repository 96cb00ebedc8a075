from __future__ import annotations

import datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tabnsm.columns.date import DATE_PARTS, date_parts
from tabnsm.tables.date_format import parse_dates


@given(st.lists(st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2500, 1, 1))))
def test_iso_strings_and_parts_match_the_standard_library(moments):
    micros, valid = parse_dates([moment.isoformat() for moment in moments], "Y-m-d")
    assert valid.all()
    parts = date_parts(micros, ~valid, 0)
    epoch = datetime.datetime(1970, 1, 1)
    for row, moment in zip(parts, moments, strict=True):
        expected = [
            (moment - epoch) / datetime.timedelta(days=1),
            moment.year,
            moment.month,
            moment.day,
            moment.weekday(),
            moment.timetuple().tm_yday,
            moment.hour,
            moment.minute,
        ]
        np.testing.assert_allclose(row, expected, rtol=1e-12)
        assert len(expected) == len(DATE_PARTS)
