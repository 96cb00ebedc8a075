from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

from tabnsm.errors import InvalidDataError
from tabnsm.metrics import regression_metrics, weighted_mae, weighted_rmse

finite = st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda v: round(v, 3))


def test_agrees_with_scikit_learn_and_scipy() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=300).round(1)
    prediction = (y + rng.normal(size=300)).round(1)
    metrics = regression_metrics(y, prediction)
    assert metrics["mse"] == pytest.approx(mean_squared_error(y, prediction))
    assert metrics["rmse"] == pytest.approx(np.sqrt(metrics["mse"]))
    assert metrics["mae"] == pytest.approx(mean_absolute_error(y, prediction))
    assert metrics["r2"] == pytest.approx(r2_score(y, prediction))
    assert metrics["spearman"] == pytest.approx(spearmanr(y, prediction).statistic)


def test_within_one_bin_counts_by_hand() -> None:
    y = np.array([0.0, 5.0, 10.0, 20.0, 20.0])  # 20 bins, one unit wide each
    prediction = np.array([1.9, 7.0, 10.5, 99.0, 17.9])
    # Bins apart: 1, 2, 0, 0 (beyond the range: outermost bin), 2.
    assert regression_metrics(y, prediction)["within_one_bin"] == pytest.approx(3 / 5)


@given(st.lists(st.tuples(finite, finite, st.integers(0, 3)), min_size=1, max_size=30))
def test_whole_weights_equal_repeated_rows(rows: list[tuple[float, float, int]]) -> None:
    y, prediction, weight = (np.array(side) for side in zip(*rows, strict=True))
    if not weight.any():
        weight = weight + 1
    weighted = regression_metrics(y, prediction, weight)
    repeated = regression_metrics(np.repeat(y, weight), np.repeat(prediction, weight))
    assert weighted == pytest.approx(repeated, rel=1e-6, abs=1e-6)


def test_constant_sides_stay_finite() -> None:
    y = np.array([1.0, 2.0, 3.0])
    flat = regression_metrics(y, np.full(3, 2.0))
    assert flat["spearman"] == 0.0
    assert flat["r2"] == 0.0
    constant = regression_metrics(np.full(3, 0.1), np.full(3, 0.1))
    assert constant["r2"] == 1.0
    assert constant["within_one_bin"] == 1.0
    assert regression_metrics(np.full(3, 0.1), y)["r2"] == 0.0
    assert regression_metrics([1.0], [2.0])["rmse"] == 1.0


def test_constant_truth_has_no_bins_but_exact_predictions() -> None:
    near = regression_metrics([1.0, 1.0, 1.0], [1.0, 1.1, 0.9])
    assert near["within_one_bin"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("unit", [2.0**1020, 2.0**-1000])
def test_squares_of_huge_and_tiny_values_stay_in_range(unit: float) -> None:
    y, prediction = np.array([1.0, -2.0, 3.0]), np.array([1.5, -1.0, 2.0])
    plain, scaled = (regression_metrics(u * y, u * prediction) for u in (1.0, unit))
    for name in ("rmse", "mae"):
        assert scaled[name] == unit * plain[name]
    for name in ("r2", "spearman", "within_one_bin"):
        assert scaled[name] == plain[name]


@pytest.mark.parametrize(
    ("y", "prediction", "weight"),
    [
        ([], [], None),
        ([1.0], [1.0, 2.0], None),
        ([[1.0]], [[1.0]], None),
        ([1.0], [np.nan], None),
        ([np.inf], [1.0], None),
        ([1.0], [1.0], [0.0]),
        ([1.0], [1.0], [-1.0]),
    ],
)
def test_bad_input_is_refused(y: object, prediction: object, weight: object) -> None:
    with pytest.raises(InvalidDataError):
        regression_metrics(y, prediction, weight)


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1.0, 1e170, 1e307])
def test_scores_of_any_magnitude(unit: float) -> None:
    target, prediction = np.array([1.0, -2.0, 5.0]), np.array([1.5, 2.0, 4.0])
    weight = np.array([0.5, 1.0, 3.0])
    error = np.abs(target - prediction)
    for score, plain in (
        (weighted_rmse, np.sqrt(np.average(error**2, weights=weight))),
        (weighted_mae, np.average(error, weights=weight)),
    ):
        got = score(target * unit, prediction * unit, weight)
        assert got == pytest.approx(plain * unit, rel=1e-12, abs=0)
        assert score(target, prediction, weight * unit) == pytest.approx(plain, rel=1e-12)
        assert score(target * unit, target * unit, None) == 0
        if unit == 1.0:
            assert got == plain
