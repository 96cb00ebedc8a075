"""The weights of a network for a table with further features and categories."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.nn.model import TabNSM

Places = tuple[Tensor | None, Tensor | None]
"""Where each row, and each column, of a matrix goes in a larger one; None is where it is."""


@torch.no_grad()
def extend_network(
    network: TabNSM,
    begun: TabNSM,
    place_of: NDArray[np.int64],
    code_of: Mapping[int, NDArray[np.int64]],
) -> dict[str, Tensor]:
    """Weights of `begun` with those of `network` in their places.

    A new category begins as one that was never seen. What the head makes of a new feature begins
    at zero, its token as `begun` has it. Where the head's shape has changed, because a wider table
    has fewer pools, the head begins anew.

    Parameters
    ----------
    network : TabNSM
        With the weights to keep.
    begun : TabNSM
        Of the same options, for the new features.
    place_of : ndarray of int64
        Of each feature of `network` among those of `begun`.
    code_of : mapping of int to ndarray of int64
        By the feature of `network` that is a category: the new code of each of its codes.

    Returns
    -------
    dict of str to Tensor
        As from ``begun.state_dict()``.
    """
    place = torch.from_numpy(np.asarray(place_of, dtype=np.int64))
    old, weights = network.state_dict(), begun.state_dict()
    places = _tokenizer_places(network, begun, place, code_of)
    if begun.n_features != network.n_features:
        places |= _mixer_places(network, begun, place)
        if begun.n_pools == network.n_pools:
            places |= _head_places(network, begun, place)
    extended = {}
    for name, new in weights.items():
        if name in places and name in old:
            extended[name] = _placed(old[name], new, *places[name])
        else:
            is_same = name in old and old[name].shape == new.shape
            extended[name] = (old[name] if is_same else new).clone()
    return extended


def _placed(old: Tensor, new: Tensor, rows: Tensor | None, columns: Tensor | None) -> Tensor:
    """The new tensor with the old one inside; rows of the old one are zero in new columns."""
    rows = torch.arange(len(old)) if rows is None else rows
    result = new.clone()
    if columns is None:
        result[rows] = old
    else:
        result[rows] = 0.0
        result[rows[:, None], columns] = old
    return result


def _tokenizer_places(
    network: TabNSM, begun: TabNSM, place: Tensor, code_of: Mapping[int, NDArray[np.int64]]
) -> dict[str, Places]:
    old, new = network.tokenizer, begun.tokenizer
    index = {
        name: {int(feature): k for k, feature in enumerate(getattr(new, name))}
        for name in ("numeric", "categorical", "binned")
    }
    slopes, codes = [], []
    for k, feature in enumerate(old.binned.tolist()):
        first = int(new.begin[index["binned"][int(place[feature])]])
        slopes.append(first + torch.arange(int(old.begin[k + 1] - old.begin[k])))
    for feature in old.categorical.tolist():
        k = index["categorical"][int(place[feature])]
        own = new.offsets[k] + torch.from_numpy(code_of[feature])
        codes.append(own)
        # New codes of a known category begin as an unseen one, with nothing beside the bias.
        new.table[new.offsets[k] : new.offsets[k] + int(new.code_limits[k]) + 1] = 0.0
    numeric = [index["numeric"][int(place[feature])] for feature in old.numeric.tolist()]
    places: dict[str, Places] = {
        "tokenizer.weight": (torch.tensor(numeric, dtype=torch.long), None),
        "tokenizer.bias": (place, None),
    }
    if codes:
        places["tokenizer.table"] = torch.cat(codes), None
    if slopes:
        places["tokenizer.slopes"] = torch.cat(slopes), None
    return places


def _mixer_places(network: TabNSM, begun: TabNSM, place: Tensor) -> dict[str, Places]:
    """Features that are mixed with each other, where a chunk holds all of them."""
    chunk = network.config.mixer_chunk_size
    if network.interaction.mixer is None or begun.n_features > chunk:
        return {}
    prefix = "interaction.mixer.feature"
    matrices: dict[str, Places] = {f"{prefix}{k}.weight": (place, place) for k in (1, 2)}
    return matrices | {f"{prefix}{k}.bias": (place, None) for k in (1, 2)}


def _head_places(network: TabNSM, begun: TabNSM, place: Tensor) -> dict[str, Places]:
    """Inputs of the head follow their features; the units of its middle stage stay in front."""
    n_pools, n_features, t = network.n_pools, begun.n_features, network.n_targets
    pools = n_features + place[:, None] * n_pools + torch.arange(n_pools)
    inputs = torch.cat([place, pools.flatten()])
    half = (network.n_features * (1 + n_pools) + 1) // 2
    new_half = (n_features * (1 + n_pools) + 1) // 2
    middle = torch.arange(half)
    fused = torch.cat([middle, new_half + torch.arange(2 * t)])
    is_factored = len(list(begun.head.dec1.parameters())) == 3
    if is_factored != (len(list(network.head.dec1.parameters())) == 3):
        return {}
    places: dict[str, Places] = {
        "mlp1.2.weight": (inputs, None),
        "mlp1.2.bias": (inputs, None),
        "mlp2.2.weight": (middle, None),
        "mlp2.2.bias": (middle, None),
        "dec2.weight": (None, middle),
        "fusion.0.weight": (None, fused),
    }
    places |= {f"{name}.0.weight": (None, inputs) for name in ("mlp1", "mlp2", "mlp3")}
    if is_factored:
        places["dec1.0.weight"] = None, inputs
        places |= {f"dec1.1.{part}": (middle, None) for part in ("weight", "bias")}
    else:
        places |= {"dec1.weight": (middle, inputs), "dec1.bias": (middle, None)}
    return {f"head.{name}": where for name, where in places.items()}
