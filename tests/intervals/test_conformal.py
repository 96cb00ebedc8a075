"""Conformal quantiles against their definition, against MAPIE, and their guarantee."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabnsm.intervals.conformal import conformal_quantiles, group_weights, reachable_levels
from tests.oracles.conformal import conformal_quantile

weighted_scores = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 9)), min_size=2)


@settings(max_examples=200, deadline=None)
@given(weighted_scores, st.integers(1, 99))
def test_against_the_definition(rows: list[tuple[int, int]], percent: int) -> None:
    rows = sorted(rows)
    scores, weights = [float(score) for score, _ in rows], [weight for _, weight in rows]
    expected = conformal_quantile(scores, weights, Fraction(percent, 100))
    found = conformal_quantiles(np.array(scores), np.array(weights, float), [percent / 100])
    assert found[0] == pytest.approx(expected)


@settings(max_examples=100, deadline=None)
@given(weighted_scores, st.lists(st.floats(1e-6, 1 - 1e-6), min_size=2))
def test_never_falls(rows: list[tuple[int, int]], levels: list[float]) -> None:
    rows = sorted(rows)
    scores, weights = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    found = conformal_quantiles(scores, weights, sorted(levels))
    with np.errstate(invalid="ignore"):
        assert not (np.diff(found) < 0).any()


@pytest.mark.parametrize("n_rows", [9, 19, 20, 38])
@pytest.mark.parametrize("level", [0.1, 0.25, 0.5, 0.8, 0.95])
def test_holds_for_a_row_that_is_left_out(n_rows: int, level: float) -> None:
    """Of n + 1 exchangeable rows, each is the further one with the same probability."""
    every = np.random.default_rng(0).permutation(n_rows + 1).astype(float)
    inside = 0
    for k, score in enumerate(every):
        quantile = conformal_quantiles(np.sort(np.delete(every, k)), None, [level])[0]
        inside += score <= quantile if level >= 0.5 else score < quantile
    share = inside / (n_rows + 1)
    if level == 0.5:
        assert abs(share - 0.5) <= 0.5 / (n_rows + 1) + 1e-9
    else:
        assert share >= level - 1e-9 if level > 0.5 else share <= level + 1e-9
        assert abs(share - level) <= 1 / (n_rows + 1)  # and it is no wider than needed


def test_equal_weights_change_nothing_and_whole_weights_repeat_rows() -> None:
    scores, levels = np.sort(np.random.default_rng(0).normal(size=40)), [0.05, 0.3, 0.5, 0.9]
    plain = conformal_quantiles(scores, None, levels)
    np.testing.assert_array_equal(conformal_quantiles(scores, np.full(40, 7.0), levels), plain)
    # Weight moves the quantile to where it is.
    heavy = np.where(scores > 0, 5.0, 1.0)
    assert (conformal_quantiles(scores, heavy, levels) >= plain).all()


def test_too_few_rows_have_no_bound() -> None:
    lowest, highest = reachable_levels(19)
    assert (lowest, highest) == (0.05, 0.95)
    found = conformal_quantiles(np.arange(19.0), None, [0.049, 0.05, 0.95, 0.951])
    assert found.tolist() == [-np.inf, 0.0, 18.0, np.inf]
    assert conformal_quantiles(np.array([3.0]), None, [0.5])[0] == 3.0


def test_groups_count_the_same() -> None:
    weight = group_weights(np.array([4, 4, 4, 9, 2]), np.array([1.0, 1.0, 2.0, 5.0, 3.0]))
    np.testing.assert_allclose(weight, [0.25, 0.25, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_plain_scores_are_those_of_mapie(level: float) -> None:
    from mapie.conformity_scores import AbsoluteConformityScore
    from mapie.regression import SplitConformalRegressor
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(350, 2))
    y = X[:, 0] + rng.exponential(size=350)
    model = LinearRegression().fit(X[:100], y[:100])
    theirs = SplitConformalRegressor(
        model,
        confidence_level=level,
        conformity_score=AbsoluteConformityScore(sym=False),
        prefit=True,
    )
    theirs.conformalize(X[100:250], y[100:250])
    points, expected = theirs.predict_interval(X[250:])
    scores = np.sort(y[100:250] - model.predict(X[100:250]))
    ends = conformal_quantiles(scores, None, [(1 - level) / 2, (1 + level) / 2])
    np.testing.assert_allclose(points[:, None] + ends, expected[:, :, 0])
