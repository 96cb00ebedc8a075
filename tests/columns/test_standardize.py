from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tabnsm.columns.standardize import Standardizer, is_missing


def apply(standardizer: Standardizer, values, *, clip: bool = False) -> np.ndarray:
    matrix = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    out = np.empty(matrix.shape, dtype=np.float32)
    standardizer.apply(matrix, out, clip=clip)
    return out


def fit(values) -> Standardizer:
    return Standardizer.fit(np.asarray(values, dtype=np.float64).reshape(len(values), -1))


def test_mean_and_spread_match_numpy():
    matrix = np.random.default_rng(0).normal(5, 3, size=(200, 4))
    out = apply(Standardizer.fit(matrix), matrix)
    expected = (matrix - matrix.mean(axis=0)) / matrix.std(axis=0)
    np.testing.assert_allclose(out, expected, atol=1e-6)


def test_missing_and_infinite_values_become_the_mean():
    standardizer = fit([1.0, np.nan, 3.0, np.inf])
    np.testing.assert_array_equal(
        apply(standardizer, [1.0, np.nan, 3.0, np.inf, -np.inf]).ravel(), [-1, 0, 1, 0, 0]
    )


def test_clipping_limits_to_the_range_widened_by_a_tenth():
    standardizer = fit([0.0, 10.0])  # mean 5, spread 5
    out = apply(standardizer, [0.0, 10.5, 11.0, 500.0, -500.0, np.inf, -np.inf], clip=True)
    np.testing.assert_allclose(out.ravel(), [-1, 1.1, 1.2, 1.2, -1.2, 1, -1], rtol=1e-6)


def test_far_values_are_counted():
    standardizer = fit([0.0, 10.0])
    matrix = np.array([[19.9], [20.1], [-10.1], [np.nan], [np.inf]])
    far = standardizer.apply(matrix, np.empty(matrix.shape, np.float32), clip=True)
    assert far.tolist() == [3]


@pytest.mark.parametrize(
    "values",
    [[1e300, -1e300, 5e299], [1e-310, 2e-310, 0.0], [1e9, 1e9 + 1, 1e9 + 2], [1e308, -1e308]],
)
def test_extreme_scales_keep_mean_zero_and_spread_one(values):
    out = apply(fit(values), values).astype(np.float64)
    assert abs(out.mean()) < 1e-5
    assert abs(out.std() - 1) < 0.02


def test_constant_and_empty_columns_become_zero():
    constant = fit([7.0, 7.0, np.nan])
    assert not constant.varies[0]
    np.testing.assert_array_equal(apply(constant, [7.0, np.nan]).ravel(), [0, 0])
    empty = fit([np.nan, np.nan])
    assert not empty.varies[0]
    np.testing.assert_array_equal(apply(empty, [np.nan, 2.0]).ravel(), [0, 2])


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2))),
    arrays(np.float64, st.tuples(st.integers(1, 6), st.just(2))),
    st.booleans(),
)
def test_no_input_makes_an_infinite_feature(fit_matrix, matrix, clip):
    before = matrix.copy()
    out = apply(Standardizer.fit(fit_matrix), matrix, clip=clip)
    assert np.isfinite(out).all()
    np.testing.assert_array_equal(matrix, before)


def test_state_round_trip_is_exact():
    standardizer = Standardizer.stack([fit([1.0, 2.0]), fit([1e300, 0.1])])
    again = Standardizer.from_tensor(standardizer.to_tensor())
    for name in ("pre_scale", "center", "scale", "low", "high"):
        np.testing.assert_array_equal(getattr(again, name), getattr(standardizer, name))
    np.testing.assert_array_equal(again.select([1]).center, standardizer.center[1:])
    assert Standardizer.stack([]).to_tensor().shape == (5, 0)


def test_infinities_are_missing_unless_clipped():
    matrix = np.array([[np.nan, np.inf, 1.0]])
    assert is_missing(matrix, clip=False).tolist() == [[True, True, False]]
    assert is_missing(matrix, clip=True).tolist() == [[True, False, False]]
