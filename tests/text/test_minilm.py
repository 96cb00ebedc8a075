"""MiniLM read from its files is the model that sentence-transformers makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from tabnsm.text.minilm import load_minilm, minilm_folder
from tabnsm.text.transformer import TransformerEncoder, load_transformer

# Accents, other scripts, special tokens, signs, blanks, and texts beyond the limit.
TEXTS = [
    "a red car",
    "",
    "  Senior\tAccountant\n",
    "Ünïcödé naïve café",
    "日本語 テキスト",
    "[MASK] [CLS] x [SEP]",
    "\u200b😀 ﬁne",
    "don't: $1,234.50 (47.6 %)",
    "word " * 400,
    "x" * 300,
    "é" * 300,
]


@pytest.fixture(scope="module")
def library() -> TransformerEncoder:
    return load_transformer(str(minilm_folder()))


@pytest.mark.slow
def test_tokens_embeddings_and_fingerprint_are_those_of_the_library(
    library: TransformerEncoder,
) -> None:
    ours = load_minilm()
    for truncate in (True, False):
        found = ours._tokenize(TEXTS, truncate=truncate)
        assert found == library._tokenize(TEXTS, truncate=truncate)
    assert max(map(len, ours._tokenize(TEXTS, truncate=True))) == ours.max_tokens == 256
    np.testing.assert_array_equal(ours.encode(TEXTS), library.encode(TEXTS))
    np.testing.assert_allclose(ours.encode(TEXTS), library._encode_plain(TEXTS), atol=1e-5)
    assert ours.count_truncated(TEXTS) == library.count_truncated(TEXTS) == 1
    assert ours.fingerprint == library.fingerprint  # so that the cache stays valid


def test_it_is_loaded_once() -> None:
    assert load_minilm() is load_minilm()
