"""Search for good options: a space, an objective, a budget, and a file that survives a crash."""

from __future__ import annotations

from tabnsm.tuning.config_file import read_config, write_config
from tabnsm.tuning.regressor import tune
from tabnsm.tuning.report import Report
from tabnsm.tuning.result import TrialRecord, TuningResult
from tabnsm.tuning.space import Choice, Integer, Parameter, Real, search_space
from tabnsm.tuning.study import search

__all__ = [
    "Choice",
    "Integer",
    "Parameter",
    "Real",
    "Report",
    "TrialRecord",
    "TuningResult",
    "read_config",
    "search",
    "search_space",
    "tune",
    "write_config",
]
