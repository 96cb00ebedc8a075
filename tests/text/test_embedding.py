"""Embedding in batches, from the cache where it can be, within a time limit where there is one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tabnsm.text import cache_info
from tabnsm.text import embedding as text_embedding
from tabnsm.text.embedding import TextTooSlowError, embed_texts
from tests.fakes import FakeTextEncoder

TEXTS = [f"text {k} " + "and more " * (k % 40) for k in range(3000)]


class Clock:
    """A clock on which the encoder takes a second per thousand characters."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, encoder: FakeTextEncoder) -> None:
        self.now = 0.0
        encode = encoder.encode

        def timed(texts: list[str]) -> np.ndarray:
            self.now += sum(map(len, texts)) / 1000
            return encode(texts)

        monkeypatch.setattr(encoder, "encode", timed)
        monkeypatch.setattr(text_embedding, "time", self)

    def monotonic(self) -> float:
        return self.now


def seconds_for(texts: list[str]) -> float:
    return sum(map(len, texts)) / 1000


def test_the_cache_is_asked_before_the_encoder() -> None:
    encoder = FakeTextEncoder(5)
    whole = embed_texts(TEXTS[:2000], encoder, use_cache=True)
    assert len(encoder.encoded) == 2000
    encoder.encoded.clear()
    again = embed_texts(TEXTS, encoder, use_cache=True)
    assert sorted(encoder.encoded) == sorted(TEXTS[2000:])
    np.testing.assert_array_equal(again[:2000], whole)
    np.testing.assert_array_equal(again, embed_texts(TEXTS, FakeTextEncoder(5), use_cache=False))


@pytest.mark.parametrize("limit", [math.inf, 2.5])
def test_enough_time_changes_no_bit(monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
    encoder = FakeTextEncoder(5)
    clock = Clock(monkeypatch, encoder)
    ends = limit * seconds_for(TEXTS)
    found = embed_texts(TEXTS, encoder, use_cache=True, seconds_left=lambda: ends - clock.now)
    np.testing.assert_array_equal(found, embed_texts(TEXTS, FakeTextEncoder(5), use_cache=False))
    assert sorted(encoder.encoded) == sorted(TEXTS)


def test_texts_that_take_too_long_are_given_up_after_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = FakeTextEncoder(5)
    clock = Clock(monkeypatch, encoder)
    ends = 1.5 * seconds_for(TEXTS)  # they would fit, but leave too little for training
    with pytest.raises(TextTooSlowError, match="Embedding 2,968 more texts takes") as caught:
        embed_texts(TEXTS, encoder, use_cache=True, seconds_left=lambda: ends - clock.now)
    # A few texts of all lengths tell how long the others take, though the shortest come first.
    assert caught.value.seconds == pytest.approx(seconds_for(TEXTS), rel=0.2)
    assert caught.value.seconds_left == ends - clock.now
    assert cache_info().n_entries == len(encoder.encoded) == 32


def test_an_encoder_that_gets_slower_is_given_up_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = FakeTextEncoder(5)
    clock = Clock(monkeypatch, encoder)
    left = iter([10_000.0, 1.0])
    with pytest.raises(TextTooSlowError, match="Embedding 1,944 more texts"):
        embed_texts(TEXTS, encoder, use_cache=True, seconds_left=lambda: next(left))
    assert cache_info().n_entries == 32 + 1024
    assert clock.now < seconds_for(TEXTS) / 2


def test_cached_texts_need_no_time() -> None:
    embed_texts(TEXTS, FakeTextEncoder(5), use_cache=True)
    encoder = FakeTextEncoder(5)
    embed_texts(TEXTS, encoder, use_cache=True, seconds_left=lambda: 0.0)
    assert not encoder.encoded
