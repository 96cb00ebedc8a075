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


def load_encoder(encoder: str | TextEncoder, precision: str = "float32") -> TextEncoder:
    """The encoder that an option asks for.

    It is "minilm", a local path, the name of a model on this machine, or an encoder, which has its
    own precision.
    """
    if isinstance(encoder, str):
        from tabnsm.text.sentence import SentenceEncoder

        return SentenceEncoder.load(encoder, precision)
    if isinstance(encoder, TextEncoder):
        own = getattr(encoder, "precision", "float32")
        if precision != own:
            raise InvalidOptionError(
                f"text_precision must be {own!r}, that of the text encoder {encoder.name!r}, got "
                f"{precision!r}. Name a model as text_encoder, such as 'minilm', to choose."
            )
        return encoder
    raise InvalidOptionError(
        "text_encoder must be a string or have name, fingerprint, d_text, encode and "
        f"count_truncated, got {type(encoder).__name__}."
    )


def recall_encoder(
    encoder: str | TextEncoder, precision: str, fingerprint: str, d_text: int
) -> TextEncoder:
    """The encoder of a saved model; one that its files prove to be the same is not loaded yet.

    It may be another one, which its fingerprint shows.
    """
    if isinstance(encoder, str):
        from tabnsm.text.deferred import DeferredEncoder

        deferred = DeferredEncoder.find(encoder, precision, d_text)
        if deferred is not None and deferred.fingerprint == fingerprint:
            return deferred
    return load_encoder(encoder, precision)
