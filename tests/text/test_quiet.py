from __future__ import annotations

import logging

import pytest

from tabnsm.text.quiet import quiet_libraries


def test_levels_and_bars_are_as_before_even_after_an_error():
    bars = pytest.importorskip("transformers.utils.logging")
    logger = logging.getLogger("transformers")
    before = (logger.level, bars.is_progress_bar_enabled())

    def fail() -> None:
        with quiet_libraries():
            assert logger.level == logging.ERROR
            assert not bars.is_progress_bar_enabled()
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    assert (logger.level, bars.is_progress_bar_enabled()) == before


def test_bars_that_were_off_stay_off():
    bars = pytest.importorskip("transformers.utils.logging")
    was_on = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        with quiet_libraries():
            pass
        assert not bars.is_progress_bar_enabled()
    finally:
        if was_on:
            bars.enable_progress_bar()
