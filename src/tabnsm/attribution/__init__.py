"""Why a row was predicted as it was: attributions of columns, and the foreground of attention."""

from __future__ import annotations

from tabnsm.attribution.explanation import Explanation
from tabnsm.attribution.rows import BASELINES, explain_rows
from tabnsm.attribution.summary import ExplanationSummary

__all__ = ["BASELINES", "Explanation", "ExplanationSummary", "explain_rows"]
