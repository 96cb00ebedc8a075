"""One file for tensors and JSON: safetensors with a SHA-256 over all of it, written atomically."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from tabnsm.atomic import atomic_write as atomic_write  # for those who have it from here
from tabnsm.errors import ModelFileError

META_KEY, HASH_KEY = "tabnsm", "sha256"


def write_container(
    path: str | Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]
) -> None:
    """Write tensors and JSON-able metadata to `path`."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(meta, sort_keys=True, allow_nan=False)
    header = {META_KEY: text, HASH_KEY: content_hash(plain, text)}
    atomic_write(path, _in_order(safetensors.torch.save(plain, metadata=header)))


def read_container(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_container` wrote, after checking every byte of it.

    Raises `ModelFileError` if the file is missing, truncated, changed or not one of ours.
    """
    path = Path(path)
    if not path.is_file():
        found = f"{path} is a folder" if path.is_dir() else f"there is no file {path}"
        raise ModelFileError(f"A model must be a file that exists, but {found}. Check the path.")
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


def _in_order(content: bytes) -> bytes:
    """The same safetensors file with sorted metadata, whose order is random when it is written."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the tensors stay aligned
    return len(text).to_bytes(8, "little") + text + content[8 + length :]
