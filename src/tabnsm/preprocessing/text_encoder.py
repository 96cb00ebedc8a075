"""What a text encoder must offer, and how an option leads to one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError


@runtime_checkable
class TextEncoder(Protocol):
    """What an encoder of strings must offer.

    Attributes
    ----------
    name : str
        How a saved model names it.
    fingerprint : str
        Changes whenever its output does; keys the cache and is checked when a model is loaded.
    d_text : int
        Length of an embedding.
    """

    @property
    def name(self) -> str:
        """How a saved model names it."""

    @property
    def fingerprint(self) -> str:
        """Identity of its output."""

    @property
    def d_text(self) -> int:
        """Length of an embedding."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed strings: one float32 row of length `d_text` each."""

    def count_truncated(self, texts: list[str]) -> int:
        """Count the strings that are longer than the encoder reads."""


def load_encoder(encoder: str | TextEncoder) -> TextEncoder:
    """The encoder that an option asks for.

    Parameters
    ----------
    encoder : str or TextEncoder
        "minilm", a local path, the name of a model on this machine, or an encoder.

    Returns
    -------
    TextEncoder
        Ready to embed strings.
    """
    if isinstance(encoder, str):
        from tabnsm.preprocessing.sentence import SentenceEncoder

        return SentenceEncoder.load(encoder)
    if isinstance(encoder, TextEncoder):
        return encoder
    raise InvalidOptionError(
        "text_encoder must be a string or have name, fingerprint, d_text, encode and "
        f"count_truncated, got {type(encoder).__name__}."
    )
