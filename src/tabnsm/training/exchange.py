"""What a fit and its worker processes send each other: arrays in a file, messages in pipes."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.columns.encoded import TextFeatures
from tabnsm.nn.config import ArchitectureConfig
from tabnsm.target import TargetModel
from tabnsm.training.config import TrainingConfig
from tabnsm.training.objective import ObjectiveConfig
from tabnsm.training.prepare import PreparedFit
from tabnsm.training.rise import RiseConfig
from tabnsm.training.rows import TrainingData

if TYPE_CHECKING:
    from tabnsm.columns import TableEncoder
    from tabnsm.options import Options

ALIGNMENT = 64
_CONFIGS = {
    "architecture": ArchitectureConfig,
    "objective": ObjectiveConfig,
    "rise": RiseConfig,
    "training": TrainingConfig,
}
_PARTS = ("train", "validation")


@dataclass(frozen=True)
class EncodedShape:
    """What networks need to know of the encoder: the width and kinds of the encoded features.

    Parameters
    ----------
    n_features : int
    category_sizes : sequence of int or None
    bins : Tensor or None
        As for `TabNSM`.
    """

    n_features: int
    category_sizes: Sequence[int] | None
    bins: Tensor | None


def write_fit(prepared: PreparedFit) -> tuple[IO[bytes], dict[str, Any]]:
    """Write all that trains networks to a file without a name, which all workers map.

    The file has no name, so that the system removes it with the last process that has it open,
    however that ends.

    Parameters
    ----------
    prepared : PreparedFit

    Returns
    -------
    file : binary file
        With the arrays.
    meta : dict
        What `pack_fit` returns.
    """
    file = tempfile.TemporaryFile(prefix="tabnsm-")  # noqa: SIM115
    try:
        meta = pack_fit(prepared, file)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file, meta


def pack_fit(prepared: PreparedFit, file: IO[bytes]) -> dict[str, Any]:
    """Write the arrays that train networks to a file.

    Parameters
    ----------
    prepared : PreparedFit
    file : binary file

    Returns
    -------
    dict
        JSON-able; where each array is, and everything else.
    """
    arrays = _arrays(prepared)
    target_tensors, target_meta = prepared.target.to_state()
    arrays |= {f"target.{name}": tensor.numpy() for name, tensor in target_tensors.items()}
    encoder = prepared.encoder
    sizes = encoder.category_sizes
    if encoder.bins is not None:
        arrays["bins"] = encoder.bins.numpy()
    for number, weights in enumerate(prepared.start):
        arrays |= {f"start.{number}.{name}": tensor.numpy() for name, tensor in weights.items()}
    meta = {
        "n_started": len(prepared.start),
        "n_features": encoder.n_features,
        "category_sizes": None if sizes is None else [int(size) for size in sizes],
        "n_texts": {part: len(getattr(prepared.data, part).texts) for part in _PARTS},
        "target": target_meta,
        "options": {name: asdict(getattr(prepared.options, name)) for name in _CONFIGS},
        "seed": prepared.seed,
    }
    return meta | {"arrays": {name: _append(file, array) for name, array in arrays.items()}}


def read_fit(descriptor: int, meta: Mapping[str, Any]) -> PreparedFit:
    """Map what `write_fit` wrote; the table of several workers is in memory once.

    Parameters
    ----------
    descriptor : int
        Of the open file.
    meta : mapping

    Returns
    -------
    PreparedFit
        Without an encoder of tables: it trains networks and does nothing else.
    """
    # Copied where it is written to, which nothing does: torch wants arrays that could be.
    return unpack_fit(mmap.mmap(descriptor, 0, access=mmap.ACCESS_COPY), meta)


def unpack_fit(memory: Any, meta: Mapping[str, Any]) -> PreparedFit:
    """The fit whose arrays `pack_fit` has written to this buffer; they are not copied."""
    arrays = {
        name: np.ndarray(tuple(shape), np.dtype(kind), memory, offset)
        for name, (kind, shape, offset) in meta["arrays"].items()
    }
    tables = {part: _table(arrays, part, meta["n_texts"][part]) for part in _PARTS}
    data = TrainingData(
        tables["train"],
        arrays["train.target"],
        arrays.get("train.weight"),
        tables["validation"],
        arrays["validation.target"],
        arrays.get("validation.weight"),
    )
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    sizes = meta["category_sizes"]
    shape = EncodedShape(meta["n_features"], sizes, tensors.get("bins"))
    target = TargetModel.from_state(_part(tensors, "target."), meta["target"], sizes or ())
    configs = {name: config(**meta["options"][name]) for name, config in _CONFIGS.items()}
    return PreparedFit(
        cast("TableEncoder", shape),
        data,
        target,
        cast("Options", SimpleNamespace(**configs)),
        meta["seed"],
        tensors["generator_state"],
        tuple(_part(tensors, f"start.{number}.") for number in range(meta["n_started"])),
    )


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def send(pipe: IO[bytes], message: Mapping[str, Any], tensors: Mapping[str, Tensor] | None) -> None:
    """Write a message: a line of JSON, then tensors as a safetensors file."""
    content = b"" if tensors is None else safetensors.torch.save(dict(tensors))
    line = json.dumps({**message, "n_bytes": len(content)})
    pipe.write(line.encode() + b"\n" + content)
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Read a message of `send`; None where the other side has ended, even within a message."""
    line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    message: dict[str, Any] = json.loads(line)
    n_bytes = message.pop("n_bytes")
    content = pipe.read(n_bytes)
    if len(content) < n_bytes:
        return None
    return message, safetensors.torch.load(content) if n_bytes else {}


def torch_settings() -> dict[str, Any]:
    """Settings of torch in this process that may change bits and that `usual_torch` leaves."""
    tiny = torch.tensor([1e-40])
    return {
        "matmul_precision": torch.get_float32_matmul_precision(),
        "mkldnn": torch.backends.mkldnn.enabled,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "flushes_denormals": bool((tiny * 1.0 == 0).item()),
    }


def apply_torch_settings(settings: Mapping[str, Any]) -> None:
    """Set torch as `torch_settings` found it in another process."""
    torch.set_float32_matmul_precision(settings["matmul_precision"])
    torch.backends.mkldnn.enabled = settings["mkldnn"]
    if settings["deterministic"] != torch.are_deterministic_algorithms_enabled():
        # Only where it must be: the call imports torch's compiler, which takes seconds.
        torch.use_deterministic_algorithms(settings["deterministic"], warn_only=True)
    torch.set_flush_denormal(settings["flushes_denormals"])


def _arrays(prepared: PreparedFit) -> dict[str, np.ndarray]:
    """Arrays of both parts of the split, and where the random numbers begin."""
    arrays = {"generator_state": prepared.generator_state.numpy()}
    for part in _PARTS:
        table: EncodedTable = getattr(prepared.data, part)
        arrays[f"{part}.dense"] = table.dense.numpy()
        for k, text in enumerate(table.texts):
            arrays[f"{part}.text.{k}"] = text.values.numpy()
            arrays[f"{part}.text_index.{k}"] = text.index.numpy()
        arrays[f"{part}.target"] = getattr(prepared.data, f"{part}_target")
        weight = getattr(prepared.data, f"{part}_weight")
        if weight is not None:
            arrays[f"{part}.weight"] = weight
    return arrays


def _table(arrays: Mapping[str, np.ndarray], part: str, n_texts: int) -> EncodedTable:
    texts = [
        TextFeatures(
            torch.from_numpy(arrays[f"{part}.text.{k}"]),
            torch.from_numpy(arrays[f"{part}.text_index.{k}"]),
        )
        for k in range(n_texts)
    ]
    return EncodedTable(torch.from_numpy(arrays[f"{part}.dense"]), tuple(texts))


def _append(file: IO[bytes], array: np.ndarray) -> tuple[str, tuple[int, ...], int]:
    """Write an array at the end of the file; its type, shape and place."""
    offset = -(-file.seek(0, os.SEEK_END) // ALIGNMENT) * ALIGNMENT
    file.seek(offset)
    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return array.dtype.str, array.shape, offset
