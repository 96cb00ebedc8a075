"""Neighbors: the mean target of the training rows that a network sees as most alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.columns import EncodedTable
from tabnsm.functional.staging import staged_prediction
from tabnsm.nn.head import MultiStageHead
from tabnsm.nn.model import TabNSM
from tabnsm.prediction import eval_mode, tile_rows

MAX_POINTS = 20_000
"""Training rows that are kept."""
N_AXES = 16
COUNTS = (4, 16, 64)
"""Numbers of neighbours that are tried."""
_TILE = 64  # rows per matrix product, always full: other shapes may round differently


@dataclass(frozen=True, eq=False)
class Neighbors:
    """Training rows as points, and their targets.

    A point is what the last stage of a network's head sees of a row, on the axes along which the
    training rows differ most. Near rows count more, by the inverse of the squared distance.

    Parameters
    ----------
    center : Tensor, shape (d,)
    axes : Tensor, shape (d, n_axes)
    points : Tensor, shape (m, n_axes)
    values : Tensor, shape (m,)
        Standardised targets.
    n_neighbors : int
    """

    center: Tensor
    axes: Tensor
    points: Tensor
    values: Tensor
    n_neighbors: int

    @classmethod
    def fit(
        cls, network: TabNSM, table: EncodedTable, standard: NDArray[np.float32], seed: int
    ) -> Neighbors:
        """Place the training rows, or a part of them.

        Parameters
        ----------
        network : TabNSM
        table : EncodedTable
        standard : ndarray of float32, shape (n,)
            What the network should predict for these rows.
        seed : int
        """
        chosen = np.random.default_rng(seed).permutation(table.n_rows)[:MAX_POINTS]
        seen = last_stage(network, table.take(torch.from_numpy(chosen)))  # (m, d)
        center = seen.mean(dim=0)
        spread = (seen - center).double()
        _, vectors = torch.linalg.eigh(spread.T @ spread)
        axes = vectors[:, -N_AXES:].float().contiguous()
        values = torch.from_numpy(standard[chosen])
        return cls(center, axes, (seen - center) @ axes, values, min(COUNTS[0], len(values)))

    def with_count(self, n_neighbors: int) -> Neighbors:
        """The same rows, of which another number is looked at."""
        return replace(self, n_neighbors=min(n_neighbors, len(self.values)))

    def predict(self, seen: Tensor) -> NDArray[np.float64]:
        """Standardised predictions, (n,), from what the last stage sees, (n, d)."""
        size = (self.points**2).sum(dim=1)
        found = np.empty(len(seen))
        for first in range(0, len(seen), _TILE):
            part = seen[first : first + _TILE]
            full = torch.nn.functional.pad(part, (0, 0, 0, _TILE - len(part)))
            place = (full - self.center) @ self.axes  # (tile, n_axes)
            distance = size + (place**2).sum(dim=1, keepdim=True) - 2 * place @ self.points.T
            nearest, rows = distance.topk(self.n_neighbors, dim=1, largest=False)
            weight = 1 / (nearest.clamp_min(0) + 1e-6 * size.mean() + 1e-12).double()
            mean = (weight * self.values[rows]).sum(dim=1) / weight.sum(dim=1)
            found[first : first + _TILE] = mean[: len(part)].numpy()
        return found

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and JSON-able facts."""
        names = ("center", "axes", "points", "values")
        tensors = {name: getattr(self, name) for name in names}
        return tensors, {"n_neighbors": self.n_neighbors}

    @classmethod
    def from_state(cls, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> Neighbors:
        """Read back :meth:`to_state`."""
        return cls(**tensors, n_neighbors=facts["n_neighbors"])


def last_stage(network: TabNSM, table: EncodedTable) -> Tensor:
    """What the last stage of a network's head sees of every row, (n, d).

    Parameters
    ----------
    network : TabNSM
    table : EncodedTable
        At least one row.

    Returns
    -------
    Tensor
        On the CPU; a row's numbers do not depend on its neighbours.
    """
    device = next(network.parameters()).device
    size = tile_rows(table.n_features)
    seen = []
    with eval_mode(network), torch.inference_mode():
        for first in range(0, table.n_rows, size):
            stop = min(first + size, table.n_rows)
            rows = torch.arange(first, first + size).clamp_(max=stop - 1)
            tokens = network.tokenizer(table.gather(rows).to(device))  # (size, D, d_token)
            inputs = network.interaction(tokens, network.n_pools)  # (size, D * (1 + n_pools))
            stages = torch.cat([_stages(network.head, x) for x in torch.split(inputs, _TILE)])
            seen.append(stages[: stop - first].float().cpu())
    return torch.cat(seen).clone()  # out of inference mode


def _stages(head: MultiStageHead, features: Tensor) -> Tensor:
    """All stages but the last, which would fuse them."""
    kept: list[Tensor] = []

    def keep(stages: Tensor) -> Tensor:
        kept.append(stages)
        return stages[:, -1:]

    full = torch.nn.functional.pad(features, (0, 0, 0, _TILE - len(features)))
    staged_prediction(full, head.mlp1, head.dec1, head.mlp2, head.dec2, head.mlp3, keep)
    return kept[0][: len(features)]
