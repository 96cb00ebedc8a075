"""TabNSM: neural sparse mixer for tabular regression."""

from __future__ import annotations

__version__ = "0.1.0"
