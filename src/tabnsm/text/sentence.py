"""Sentence encoders that are on this machine; nothing is ever downloaded."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.text.bert import MIN_ROWS, BertForward
from tabnsm.threads import map_in_threads, thread_count

# Enough rows for the matrix products, and few enough that they stay in the cache.
_TOKENS_PER_BATCH = 640


class SentenceEncoder(ABC):
    """A frozen model of sentences with unit-length embeddings.

    Use :meth:`load` to make one.

    Attributes
    ----------
    name : str
        How the user asked for it.
    precision : {"float32", "int8"}
        Arithmetic of its matrix products.
    folder : Path
        Where it was loaded from.
    d_text : int
        Length of an embedding.
    max_tokens : int or None
        Tokens of a text that are read.
    forward : BertForward or None
        From tokens to embeddings; None if the model is not built like BERT.
    """

    name: str
    precision: str
    folder: Path
    d_text: int
    max_tokens: int | None
    forward: BertForward | None

    @staticmethod
    def load(name: str, precision: str = "float32") -> SentenceEncoder:
        """Load a model that is on this machine.

        Parameters
        ----------
        name : str
            "minilm", a folder, or the name of a model that was downloaded before.
        precision : {"float32", "int8"}, default="float32"
            Arithmetic of its matrix products.

        Returns
        -------
        SentenceEncoder
            Ready to embed strings.

        Raises
        ------
        MissingExtraError
            If the extra that it needs is not installed.
        InvalidOptionError
            If the model is not there, its weights are not the published ones, or it cannot
            compute in that precision.
        """
        if name == "minilm":
            from tabnsm.text.minilm import load_minilm

            return load_minilm(precision)
        from tabnsm.text.transformer import load_transformer

        return load_transformer(name, precision)

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        # A pickled estimator names the model rather than carrying its weights.
        return SentenceEncoder.load, (self.name, self.precision)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the weights, the length limit and the settings of pooling.

        Names of parameters are left out: they change from one release of transformers to the next.
        """
        return fingerprint_of(self.folder, self.max_tokens, self._weights(), self.precision)

    @abstractmethod
    def _weights(self) -> Iterable[torch.Tensor]:
        """All floating-point weights."""

    @abstractmethod
    def _tokenize(self, texts: list[str], *, truncate: bool) -> list[list[int]]:
        """Token ids of each text, of which at most `max_tokens` are kept if `truncate`."""

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed strings.

        Parameters
        ----------
        texts : list of str
            Strings.

        Returns
        -------
        ndarray of float32
            Rows of unit length.

        Shape
        -----
        (len(texts), d_text)
        """
        assert self.forward is not None
        return self._encode_by(self.forward, texts)

    def _encode_by(self, forward: BertForward, texts: list[str]) -> NDArray[np.float32]:
        embeddings = np.empty((len(texts), self.d_text), dtype=np.float32)
        tokens = self._tokenize(texts, truncate=True)
        lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)

        def embed(batch: NDArray[np.int64]) -> None:
            ids = torch.tensor([tokens[position] for position in batch])  # (n_texts, n_tokens)
            copies = -(-MIN_ROWS // ids.numel())
            embeddings[batch] = forward(ids.repeat(copies, 1))[: len(batch)].numpy()

        # Few texts are shared out evenly, too.
        share = -(-int(lengths.sum()) // thread_count())
        map_in_threads(embed, _batches(lengths, min(share, _TOKENS_PER_BATCH)))
        return embeddings

    def count_truncated(self, texts: list[str]) -> int:
        """Count the strings with more tokens than the model reads.

        Parameters
        ----------
        texts : list of str
            Strings.

        Returns
        -------
        int
            How many are cut.
        """
        limit = self.max_tokens
        if limit is None:
            return 0
        # A token is at least one character, so short strings need no look.
        long = [text for text in texts if len(text) > limit - 2]
        return sum(len(ids) > limit for ids in self._tokenize(long, truncate=False))


def fingerprint_of(
    folder: Path, max_seq_length: int | None, weights: Iterable[torch.Tensor], precision: str
) -> str:
    """SHA-256 over all that decides an embedding; the order of the weights does not matter."""
    digest = hashlib.sha256(f"{max_seq_length}".encode())
    for path in sorted(folder.glob("*/config.json")):
        digest.update(path.read_bytes())
    content = (tensor.detach().contiguous().view(torch.uint8).numpy() for tensor in weights)
    parts = sorted(hashlib.sha256(array.data).digest() for array in content)
    final = hashlib.sha256(digest.digest() + b"".join(parts))
    if precision != "float32":
        final.update(precision.encode())
    return final.hexdigest()


def _batches(lengths: NDArray[np.int64], n_tokens: int) -> list[NDArray[np.int64]]:
    """Places of texts of one length, about `n_tokens` in all; the longest first."""
    batches = []
    for length in np.unique(lengths)[::-1]:
        group = np.flatnonzero(lengths == length)
        size = max(1, n_tokens // int(length))
        batches += [group[start : start + size] for start in range(0, len(group), size)]
    return batches
