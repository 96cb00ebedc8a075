"""What users may ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.intervals.levels import DECILES, interval_levels, quantile_levels


def test_levels() -> None:
    assert quantile_levels("mean", None) is None
    assert quantile_levels("quantiles", None) == list(DECILES)
    assert quantile_levels("quantiles", np.array([0.2, 0.1])) == [0.2, 0.1]  # type: ignore[arg-type]
    levels, is_single = interval_levels(np.float64(0.5))
    assert levels == [0.25, 0.75]
    assert is_single


@pytest.mark.parametrize("quantiles", [[], [0.0], [1], [float("nan")], ["a"], 0.5, [True], [[0.1]]])
def test_refused_quantiles(quantiles: Any) -> None:
    with pytest.raises(InvalidOptionError, match="quantiles must be between 0 and 1"):
        quantile_levels("quantiles", quantiles)


def test_refused_options() -> None:
    with pytest.raises(InvalidOptionError, match="output_type must be one of"):
        quantile_levels("mode", None)
    with pytest.raises(InvalidOptionError, match="quantiles must be None"):
        quantile_levels("median", [0.5])
    with pytest.raises(InvalidOptionError, match="confidence_level must be between 0 and 1"):
        interval_levels(95)
