"""The text encoder of a saved model, whose weights are loaded when a new string needs them."""

from __future__ import annotations

import importlib.util
import json
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import MissingExtraError, ModelFileError
from tabnsm.text.minilm import MINILM, minilm_folder
from tabnsm.text.sentence import SentenceEncoder, fingerprint_of
from tabnsm.text.transformer import EXTRA, PURPOSE


class DeferredEncoder:
    """A sentence encoder on this machine, known by its files until it is used.

    Strings whose embeddings are cached need no model, and to build one takes time.
    """

    def __init__(self, name: str, precision: str, fingerprint: str, d_text: int) -> None:
        self.name = name
        self.precision = precision
        self.fingerprint = fingerprint
        self.d_text = d_text

    @classmethod
    def find(cls, name: str, precision: str, d_text: int) -> DeferredEncoder | None:
        """The model of that name, if its fingerprint can be computed without building it.

        None if it must be loaded to know it. Raises `MissingExtraError` if what loads it is not
        installed.
        """
        is_minilm = name == MINILM
        if importlib.util.find_spec("tokenizers" if is_minilm else "sentence_transformers") is None:
            raise MissingExtraError(*(("text", "Text columns") if is_minilm else (EXTRA, PURPOSE)))
        folder = minilm_folder() if is_minilm else Path(name)
        try:
            stamp = (folder / "model.safetensors").stat()
            fingerprint = _of_files(folder, precision, stamp.st_mtime_ns, stamp.st_size)
        except Exception:  # files of any shape: loading reports what is wrong with them
            return None
        return cls(name, precision, fingerprint, d_text)

    def load(self) -> SentenceEncoder:
        """The encoder itself."""
        return self._encoder

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        encoder = SentenceEncoder.load(self.name, self.precision)
        if encoder.fingerprint != self.fingerprint:
            raise ModelFileError(
                f"The text encoder must stay as it was when the model was loaded, but the files "
                f"of {self.name!r} have changed. Load the model again."
            )
        return encoder

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed strings."""
        return self._encoder.encode(texts)

    def count_truncated(self, texts: list[str]) -> int:
        """Count the strings with more tokens than the model reads."""
        return self._encoder.count_truncated(texts)


@lru_cache(maxsize=4)
def _of_files(folder: Path, precision: str, _modified: int, _size: int) -> str:
    """Fingerprint of a model in one safetensors file; that of another layout matches nothing."""
    from safetensors import safe_open

    settings = json.loads((folder / "sentence_bert_config.json").read_text())
    with safe_open(folder / "model.safetensors", "pt") as file:
        tensors = (file.get_tensor(name) for name in file.keys())  # noqa: SIM118, not a dict
        weights = (tensor for tensor in tensors if tensor.is_floating_point())
        return fingerprint_of(folder, settings["max_seq_length"], weights, precision)
