from __future__ import annotations

import json

import pytest

from tabnsm.columns import EncoderConfig
from tabnsm.errors import InvalidOptionError
from tests.fakes import FakeTextEncoder


@pytest.mark.parametrize(
    "option",
    ["date_encoding", "category_encoding", "repeated_strings", "text_columns", "text_precision"],
)
def test_unknown_choices_are_refused(option):
    with pytest.raises(InvalidOptionError, match=rf"{option} must be one of .*got 'x'"):
        EncoderConfig(**{option: "x"})


def test_it_survives_a_round_trip_through_json():
    config = EncoderConfig(column_kinds={"a": "text"}, clip_outliers=False)
    assert EncoderConfig(**json.loads(json.dumps(config.to_dict()))) == config
    assert EncoderConfig(text_encoder=FakeTextEncoder()).to_dict()["text_encoder"] == "fake"
