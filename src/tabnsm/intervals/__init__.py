"""Intervals and quantiles by split conformal prediction, from the rows that a fit holds out."""

from tabnsm.intervals.calibration import Calibration
from tabnsm.intervals.fitting import calibrate, seconds_after_training
from tabnsm.intervals.levels import interval_levels, quantile_levels

__all__ = [
    "Calibration",
    "calibrate",
    "interval_levels",
    "quantile_levels",
    "seconds_after_training",
]
