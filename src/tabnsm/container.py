"""One file for tensors and JSON: safetensors with a SHA-256 over all of it, written atomically."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from tabnsm.errors import ModelFileError

META_KEY, HASH_KEY = "tabnsm", "sha256"


def atomic_write(path: str | Path, content: bytes) -> None:
    """Write a whole file or nothing: a temporary neighbour first, then a rename."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes private files; a saved model is as readable as any other new file.
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_container(
    path: str | Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]
) -> None:
    """Write tensors and JSON-able metadata to `path`.

    Parameters
    ----------
    path : str or Path
    tensors : mapping of str to Tensor
    meta : JSON-able mapping
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    header = {META_KEY: text, HASH_KEY: content_hash(plain, text)}
    atomic_write(path, safetensors.torch.save(plain, metadata=header))


def read_container(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_container` wrote, after checking every byte of it.

    Raises
    ------
    ModelFileError
        If the file is missing, truncated, changed or not one of ours.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"A model file must exist to be read, but there is no file {path}.")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            # Copies: a tensor that maps the file would change, or crash, along with it.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(
            f"{path} is not a whole safetensors file ({error}). "
            "It may be truncated or of another kind: save the model again."
        ) from error
    if META_KEY not in header or HASH_KEY not in header:
        raise ModelFileError(
            f"{path} is a safetensors file, but was not written by tabnsm. "
            "Give a file made by TabNSMRegressor.save."
        )
    if content_hash(tensors, header[META_KEY]) != header[HASH_KEY]:
        raise ModelFileError(
            f"{path} does not match its own SHA-256: it was damaged or changed after it was "
            "written. Get a fresh copy or save the model again."
        )
    meta = json.loads(header[META_KEY])
    if not isinstance(meta, dict):
        raise ModelFileError(
            f"{path} must hold a JSON object as metadata, got {type(meta).__name__}. "
            "Give a file made by TabNSMRegressor.save."
        )
    return tensors, meta


def content_hash(tensors: Mapping[str, Tensor], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of all tensors, and `text`.

    Examples
    --------
    >>> content_hash({"a": torch.zeros(2)})[:8] == content_hash({"a": torch.zeros(2)})[:8]
    True
    >>> content_hash({"a": torch.zeros(2)}) == content_hash({"a": torch.zeros(2, 1)})
    False
    """
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        digest.update(f"|{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
