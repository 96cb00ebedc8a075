from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tabnsm.target import TargetScaler


def test_weights_shift_mean_and_spread_like_repeated_rows():
    y = np.array([1.0, 2.0, 4.0])
    weighted = TargetScaler.fit(y, np.array([1.0, 0.0, 3.0]))
    repeated = TargetScaler.fit(np.array([1.0, 4.0, 4.0, 4.0]))
    assert weighted.mean == pytest.approx(repeated.mean)
    assert weighted.scale == pytest.approx(repeated.scale)


def test_a_constant_target_stays_finite():
    scaler = TargetScaler.fit(np.full(4, 3.0))
    assert scaler.transform(np.full(2, 3.0)).tolist() == [0, 0]
    assert scaler.inverse(np.zeros(2)).tolist() == [3, 3]
    assert TargetScaler.fit(np.full(4, 3.0), np.ones(4)).scale == 1.0


@given(
    arrays(np.float64, st.integers(1, 8), elements=st.floats(allow_nan=False, allow_infinity=False))
)
def test_any_finite_target_survives_the_round_trip(y):
    scaler = TargetScaler.fit(y)
    standard = scaler.transform(y)
    assert standard.dtype == np.float32
    assert np.isfinite(standard).all()
    # Half the width each time: the width of a range can itself exceed float64.
    width = y.max() / 2 - y.min() / 2
    assert (np.abs(scaler.inverse(standard) / 2 - y / 2) <= 1e-6 * width + 1e-9 * np.abs(y)).all()


@pytest.mark.parametrize("weight", [None, np.array([1.0, 1e-3, 0.0])])
@pytest.mark.parametrize("unit", [1.0, 1e-300, 1e300])
def test_limits_are_the_range_and_a_tenth(weight, unit):
    y = np.array([1.0, 3.0, 11.0]) * unit
    limited = TargetScaler.fit(y, weight, limit=True)
    with np.errstate(over="ignore"):
        far = limited.inverse(np.array([-1e300, 1e300]))
    np.testing.assert_allclose(far / unit, [0.0, 12.0], atol=1e-6)
    inside = limited.transform(y)
    assert (limited.inverse(inside) == TargetScaler.fit(y, weight).inverse(inside)).all()
    assert TargetScaler.fit(np.full(3, unit), weight, limit=True).limits is None


@pytest.mark.parametrize("limit", [False, True])
def test_state_is_json(limit):
    scaler = TargetScaler.fit(np.array([1e300, 0.1, 3.0]), limit=limit)
    assert TargetScaler.from_state(json.loads(json.dumps(scaler.to_state()))) == scaler
