"""The text encoder of a model as an ONNX network and the file of its tokenizer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tabnsm.errors import InvalidOptionError
from tabnsm.text.bert import BertForward
from tabnsm.text.deferred import DeferredEncoder
from tabnsm.text.encoder import TextEncoder
from tabnsm.text.sentence import SentenceEncoder


class OnnxBert(nn.Module):
    """Embeddings of texts that have equally many tokens.

    Shape
    -----
    (n_texts, n_tokens) -> (n_texts, d_text)
    """

    def __init__(self, bert: BertForward) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, tokens: Tensor) -> Tensor:
        return self.bert.embed(tokens)


def find_bert(encoder: TextEncoder) -> tuple[BertForward, Any, int | None]:
    """Forward pass, tokenizer and most tokens of an encoder that ONNX can have.

    Raises
    ------
    InvalidOptionError
        If it is not one that is built like BERT, or rounds to 8 bits.
    """
    if isinstance(encoder, DeferredEncoder):
        encoder = encoder.load()
    if not isinstance(encoder, SentenceEncoder) or encoder.forward is None:
        raise InvalidOptionError(
            "The text encoder of a model to export must be a sentence encoder built like BERT, "
            f"got {encoder.name!r}. Fit with text_encoder='minilm'."
        )
    if encoder.precision != "float32":
        raise InvalidOptionError(
            "text_precision of a model to export must be 'float32', got "
            f"{encoder.precision!r}. Fit with text_precision='float32'."
        )
    tokenizer = getattr(encoder, "tokenizer", None)
    if tokenizer is None:
        raise InvalidOptionError(
            "The text encoder of a model to export must have a tokenizer of the library "
            f"tokenizers, got {encoder.name!r}. Fit with text_encoder='minilm'."
        )
    return encoder.forward, tokenizer, encoder.max_tokens


def tokenizer_file(tokenizer: Any, max_tokens: int | None) -> str:
    """The tokenizer as JSON, set up to cut long texts and not to pad short ones."""
    from tokenizers import Tokenizer

    copied = Tokenizer.from_str(tokenizer.to_str())
    copied.no_padding()
    copied.no_truncation()
    if max_tokens is not None:
        copied.enable_truncation(max_tokens)
    text: str = copied.to_str()
    return text


def example_tokens() -> Tensor:
    """Tokens of three texts, to export with."""
    return torch.arange(21).view(3, 7)
