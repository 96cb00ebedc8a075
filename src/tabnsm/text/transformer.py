"""Models of sentence-transformers as text encoders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.text.bert import BertForward
from tabnsm.text.quiet import quiet_libraries
from tabnsm.text.sentence import SentenceEncoder

EXTRA, PURPOSE = "sentence-transformers", "Text encoders other than 'minilm'"
# Upper case, white space and two lengths, where models differ.
_PROBE = [" Senior Accountant, ", "KING Seattle WA: a red car that is 47.6 % new"]


class TransformerEncoder(SentenceEncoder):
    """A model of sentence-transformers, by the fast forward pass where that computes the same.

    Parameters
    ----------
    name : str
        How the user asked for it.
    model : sentence_transformers.SentenceTransformer
        The model.
    precision : {"float32", "int8"}, default="float32"
        Arithmetic of its matrix products.
    """

    def __init__(self, name: str, model: Any, precision: str = "float32") -> None:
        self.name = name
        self.precision = precision
        self.folder = Path(name)
        self._model = model.eval()
        # The method was renamed in sentence-transformers 5; the old name warns.
        renamed = getattr(model, "get_embedding_dimension", None)
        self.d_text = int((renamed or model.get_sentence_embedding_dimension)())
        self.max_tokens = model.max_seq_length
        self.forward = self._find_forward()

    def _find_forward(self) -> BertForward | None:
        """The fast forward pass, if it computes what the model does; else the model's own."""
        try:
            bert = self._model[0].auto_model
            forward = BertForward.of(bert, "float32")
            found = self._encode_by(forward, _PROBE)
            agrees = np.allclose(found, self._encode_plain(_PROBE), atol=1e-4)
        except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, IndexError):
            agrees = False
        if self.precision == "float32":
            return forward if agrees else None
        if not agrees:
            raise InvalidOptionError(
                f"text_precision must be 'float32' for the text encoder {self.name!r}, got "
                f"{self.precision!r}, which needs a BERT model with mean pooling, such as 'minilm'."
            )
        return BertForward.of(bert, self.precision)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the library tokenizers; None if the model has none."""
        return getattr(self._model.tokenizer, "backend_tokenizer", None)

    def _weights(self) -> Iterable[torch.Tensor]:
        weights: Iterable[torch.Tensor] = self._model.parameters()
        return weights

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed strings, as the base class does."""
        return self._encode_plain(texts) if self.forward is None else super().encode(texts)

    def _encode_plain(self, texts: list[str]) -> NDArray[np.float32]:
        embeddings = np.empty((len(texts), self.d_text), dtype=np.float32)
        counts = [len(ids) for ids in self._tokenize(texts, truncate=False)]
        lengths = np.minimum(np.array(counts, dtype=np.int64), self.max_tokens or np.inf)
        # Without padding, a string's embedding has the same bits whatever else is in the batch.
        for length in np.unique(lengths):
            group = np.flatnonzero(lengths == length)
            with torch.inference_mode():
                embeddings[group] = self._model.encode(
                    [texts[position] for position in group],
                    show_progress_bar=False,
                    convert_to_numpy=True,
                    normalize_embeddings=True,
                )
        return embeddings

    def _tokenize(self, texts: list[str], *, truncate: bool) -> list[list[int]]:
        if not texts or not callable(self._model.tokenizer):
            return [[] for _ in texts]
        limit = self.max_tokens if truncate else None
        with quiet_libraries():  # it warns of long texts, which are counted and reported elsewhere
            tokens: list[list[int]] = self._model.tokenizer(
                texts, truncation=limit is not None, max_length=limit, padding=False
            )["input_ids"]
        return tokens


def load_transformer(name: str, precision: str = "float32") -> TransformerEncoder:
    """Load a model from a folder, or by the name under which it was downloaded before."""
    try:
        with quiet_libraries():
            from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError(EXTRA, PURPOSE) from error
    try:
        with quiet_libraries():
            model = SentenceTransformer(name, device="cpu", local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise InvalidOptionError(
            f"text_encoder must be 'minilm' or a model on this machine, got {name!r}, which "
            "was not found or cannot be read; nothing is downloaded. Pass the folder of a "
            f"sentence-transformers model. The reason given was: {_first_line(error)}"
        ) from error
    return TransformerEncoder(name, model, precision)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
