from __future__ import annotations

import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.text import TextEncoder
from tabnsm.text.encoder import load_encoder
from tests.fakes import FakeTextEncoder


def test_an_object_that_follows_the_protocol_is_taken_as_it_is():
    encoder = FakeTextEncoder()
    assert isinstance(encoder, TextEncoder)
    assert load_encoder(encoder) is encoder


def test_what_is_no_encoder_is_refused():
    with pytest.raises(InvalidOptionError, match="must be a string or have name, fingerprint"):
        load_encoder(object())  # type: ignore[arg-type]


def test_an_encoder_that_is_given_has_its_own_precision():
    with pytest.raises(InvalidOptionError, match=r"must be 'float32', .*'fake', got 'int8'. Name"):
        load_encoder(FakeTextEncoder(), "int8")
