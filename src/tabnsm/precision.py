"""How precisely a file stores the weights of networks: float32, bfloat16 or int8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import torch
from torch import Tensor

from tabnsm.rules import require_one_of

StoredDtype = Literal["float32", "bfloat16", "int8"]
SCALE = ".scale"
"""Ending of the name under which the scales of a matrix are stored beside it."""
_INT8_MAX = 127


def check_dtype(dtype: str) -> None:
    """Refuse a precision that files do not know."""
    require_one_of("dtype", dtype, get_args(StoredDtype))


def pack_weights(weights: Mapping[str, Tensor], dtype: StoredDtype) -> dict[str, Tensor]:
    """Weights as a file stores them.

    "bfloat16" rounds every number to 8 significant bits. "int8" stores a matrix as whole numbers
    from -127 to 127 and one scale per row, and all else as it is.

    Parameters
    ----------
    weights : mapping of str to Tensor
        Of float32.
    dtype : {"float32", "bfloat16", "int8"}

    Returns
    -------
    dict of str to Tensor

    Examples
    --------
    >>> packed = pack_weights({"a": torch.tensor([[0.5, -1.0], [0.0, 0.0]])}, "int8")
    >>> packed["a"]
    tensor([[  64, -127],
            [   0,    0]], dtype=torch.int8)
    >>> unpack_weights(packed)["a"].round(decimals=3)
    tensor([[ 0.5040, -1.0000],
            [ 0.0000,  0.0000]])
    """
    if dtype == "float32":
        return dict(weights)
    if dtype == "bfloat16":
        return {name: weight.to(torch.bfloat16) for name, weight in weights.items()}
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        packed[name] = weight
        if weight.ndim == 2:
            scale = weight.abs().amax(dim=1) / _INT8_MAX  # (n_rows,)
            unit = torch.where(scale > 0, scale, 1.0)
            packed[name] = (weight / unit[:, None]).round().to(torch.int8)
            packed[name + SCALE] = scale
    return packed


def unpack_weights(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float32 weights of what `pack_weights` made.

    Parameters
    ----------
    packed : mapping of str to Tensor

    Returns
    -------
    dict of str to Tensor
    """
    weights = {}
    for name, stored in packed.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in packed:
            continue
        weights[name] = stored.float()
        if stored.dtype == torch.int8:
            weights[name] *= packed[name + SCALE][:, None]
    return weights
