from __future__ import annotations

import pytest

from tabnsm.columns import EncoderConfig
from tabnsm.columns.schema import ColumnSpec
from tabnsm.columns.text import TextColumns, leave_out_text
from tabnsm.errors import InvalidOptionError, TabNSMWarning
from tabnsm.text.embedding import TextTooSlowError

SPECS = [
    ColumnSpec(0, "a", "text", note="codes"),
    ColumnSpec(1, "n", "numeric"),
    ColumnSpec(2, "b", "text"),
]
SLOW = TextTooSlowError("Embedding 9 more texts", seconds=30.0, seconds_left=20.0, n_done=4)


def test_columns_are_described_from_what_is_saved():
    texts = [SPECS[0], SPECS[2]]
    facts = {"text": {"d_text": [3, 2], "note": "1 of 9 texts are cut"}}
    assert TextColumns.describe(texts, facts) == [(3, "codes; 1 of 9 texts are cut"), (2, "")]
    facts = {"text": {"d_text": 5, "note": ""}}
    assert TextColumns.describe(texts, facts) == [(5, "codes"), (0, "joined with a")]
    assert TextColumns.describe([], {"text": None}) == []


def test_text_without_time_is_dropped_with_a_warning():
    with pytest.warns(TabNSMWarning, match=r"30 s.*'a', 'b' are left out.*by about 40 s; the 4 te"):
        specs = leave_out_text(SPECS, SLOW, EncoderConfig())
    assert [spec.kind for spec in specs] == ["drop", "numeric", "drop"]
    assert specs[1] is SPECS[1]


def test_text_alone_without_time_is_an_error():
    with pytest.raises(InvalidOptionError, match="time_limit must be long enough"):
        leave_out_text([SPECS[0]], SLOW, EncoderConfig())
