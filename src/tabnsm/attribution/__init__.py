"""Why a row was predicted as it was: attributions of columns, and the foreground of attention."""

from __future__ import annotations

from tabnsm.attribution.explanation import Explanation
from tabnsm.attribution.importance import column_importances
from tabnsm.attribution.inputs import displayed_columns
from tabnsm.attribution.rows import BASELINES, METHODS, explain_rows
from tabnsm.attribution.summary import ExplanationSummary

__all__ = [
    "BASELINES",
    "METHODS",
    "Explanation",
    "ExplanationSummary",
    "column_importances",
    "displayed_columns",
    "explain_rows",
]
