"""Model libraries kept off the user's terminal."""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from typing import Any

_LIBRARIES = ("sentence_transformers", "transformers", "huggingface_hub")


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Keep load reports, progress bars and warnings of the model libraries from being shown."""
    loggers = [logging.getLogger(name) for name in _LIBRARIES]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    bars = _switch_bars_off()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars is not None:
            bars.enable_progress_bar()


def _switch_bars_off() -> Any:
    """Switch progress bars off where they are on; the result switches them on again."""
    try:
        bars: Any = importlib.import_module("transformers.utils.logging")
    except ImportError:
        return None
    if not bars.is_progress_bar_enabled():
        return None
    bars.disable_progress_bar()
    return bars
