"""Quantiles of one target: never crossing, inside limits, as MAPIE for even difficulty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.forest import Forest
from tabnsm.columns import EncodedTable
from tabnsm.errors import InvalidDataError, InvalidOptionError
from tabnsm.intervals.calibration import Calibration, TargetCalibration
from tabnsm.intervals.difficulty import EVEN_SHARE, Difficulty

FEATURES = TreeFeatures((0,), (), (), ())
NONE = (-np.inf, np.inf)


def even(scores: np.ndarray, limits: tuple[float, float] = NONE) -> TargetCalibration:
    """All rows are equally hard: the error is the score."""
    difficulty = Difficulty(FEATURES, Forest.leaf(0.0), 1 / EVEN_SHARE)
    return TargetCalibration(difficulty, np.sort(scores), None, limits)


def quantiles(target: TargetCalibration, prediction: np.ndarray, levels: list[float]) -> np.ndarray:
    n = len(prediction)
    table, standard = EncodedTable(torch.zeros(n, 1)), np.zeros((n, 1), dtype=np.float32)
    return Calibration((target,)).quantiles(prediction[:, None], table, standard, levels)[:, 0]


finite = st.floats(-1e300, 1e300)


@settings(max_examples=100, deadline=None)
@given(
    arrays(np.float64, st.integers(20, 60), elements=finite),
    arrays(np.float64, 5, elements=finite),
    st.lists(st.floats(0.05, 0.95), min_size=2),
    st.tuples(finite, finite),
)
def test_never_cross(
    scores: np.ndarray, prediction: np.ndarray, levels: list[float], ends: tuple[float, float]
) -> None:
    found = quantiles(even(scores, (min(ends), max(ends))), prediction, sorted(levels))
    assert np.isfinite(found).all()
    assert (np.diff(found, axis=1) >= 0).all()


def test_even_difficulty_is_mapie() -> None:
    from mapie.conformity_scores import AbsoluteConformityScore
    from mapie.regression import SplitConformalRegressor
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.gumbel(size=300)
    model = LinearRegression().fit(X[:100], y[:100])
    theirs = SplitConformalRegressor(
        model, 0.9, conformity_score=AbsoluteConformityScore(sym=False), prefit=True
    )
    points, expected = theirs.conformalize(X[100:200], y[100:200]).predict_interval(X[200:])
    found = quantiles(even(y[100:200] - model.predict(X[100:200])), points, [0.05, 0.95])
    np.testing.assert_allclose(found, expected[:, :, 0])


def test_limits_hold_but_for_predictions_beyond_them() -> None:
    target = even(np.linspace(-5, 5, 39), limits=(0.0, 10.0))
    found = quantiles(target, np.array([1.0, 9.5, 12.0]), [0.05, 0.95])
    assert found[0, 0] == 0.0
    assert found[1, 1] == 10.0
    assert found[2, 1] == 12.0


def test_levels_that_the_rows_do_not_reach() -> None:
    calibration = Calibration((even(np.arange(19.0)),))
    calibration.check([0.05, 0.95], ["1"])
    assert calibration.max_confidence == pytest.approx(0.9)
    assert calibration.reached([0.5, 0.9, 0.95]) == [0.5, 0.9]
    with pytest.raises(InvalidOptionError, match=r"at most 0\.9 .*got 0\.95.*At least 39 are"):
        calibration.check([0.025, 0.975], ["1"])
    without = Calibration((None, even(np.arange(19.0))))
    with pytest.raises(InvalidDataError, match="got none of target width"):
        without.check([0.5], ["width", "height"])
    assert without.reached([0.5]) == []


def test_round_trip() -> None:
    weighted = replace(even(np.arange(30.0), (0.0, np.inf)), weight=np.linspace(1, 2, 30))
    calibration = Calibration((weighted, None))
    tensors, entries = calibration.to_state()
    again = Calibration.from_state(tensors, entries, (0,))
    assert again.targets[1] is None
    assert again.targets[0] is not None
    assert again.targets[0].limits == (0.0, np.inf)
    prediction, levels = np.array([1.0, 2.0]), [0.1, 0.5, 0.9]
    np.testing.assert_array_equal(
        quantiles(again.targets[0], prediction, levels), quantiles(weighted, prediction, levels)
    )
