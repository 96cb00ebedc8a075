from __future__ import annotations

import numpy as np
import pytest

from tabnsm.training.scores import weighted_mae, weighted_rmse


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
