"""The command ``tabnsm``: everything that needs no Python."""

from __future__ import annotations

from tabnsm.cli.app import main

__all__ = ["main"]
