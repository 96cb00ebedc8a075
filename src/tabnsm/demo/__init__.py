"""The demo: real loans with free text, TabNSM beside boosting and ridge regression."""

from __future__ import annotations

from tabnsm.demo.run import run_demo

__all__ = ["run_demo"]
