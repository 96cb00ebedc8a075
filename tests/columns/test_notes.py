from __future__ import annotations

import warnings

import pytest

from tabnsm.columns.notes import RowNotes
from tabnsm.columns.unseen import UnseenValues
from tabnsm.errors import TabNSMWarning
from tabnsm.tables.reading import ReadingNotes, Unreadable


def test_nothing_to_report_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RowNotes().warn()


def test_one_warning_of_each_sort():
    notes = RowNotes(
        ReadingNotes([Unreadable("price", "numbers", 2, ("x",))]),
        {f"c{k}": k for k in range(1, 8)},
        [UnseenValues("city", 1.0, ("oslo",), "")],
    )
    with pytest.warns(TabNSMWarning) as found:
        notes.warn()
    texts = [str(warning.message) for warning in found]
    assert [text.split()[0] for text in texts] == ["2", "28", "Most"]
    assert "in 'c7' (7), 'c6' (6), 'c5' (5), 'c4' (4), 'c3' (3) and 2 more column(s)." in texts[1]
