"""The report: one page that shows a model, the rows it is tried on, and what it made of them."""

from __future__ import annotations

from tabnsm.report.build import Report, build_report

__all__ = ["Report", "build_report"]
