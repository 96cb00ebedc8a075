"""Blend: the weighted mean of the networks and of further members, in the target's units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tabnsm.blend.features import TreeFeatures
from tabnsm.blend.forest import Forest
from tabnsm.blend.neighbors import Neighbors, last_stage
from tabnsm.columns import EncodedTable
from tabnsm.nn.ensemble import Ensemble, networks_of
from tabnsm.nn.model import TabNSM
from tabnsm.target import TargetModel

NETWORKS, NEIGHBORS = "networks", "nearest rows"
_CHUNK_VALUES = 2**23  # encoded values of the rows that are looked at together


@dataclass(frozen=True, eq=False)
class ForestMember:
    """Trees, and the scale that they learned the target on.

    Parameters
    ----------
    name : str
    forest : Forest
    on_raw_scale : bool
        Whether they learned the target as it is where the networks learn it transformed.
    """

    name: str
    forest: Forest
    on_raw_scale: bool = False


@dataclass(frozen=True, eq=False)
class Blend:
    """Networks and trees that predict together.

    Parameters
    ----------
    network_weight : float
        Share of the networks in the prediction.
    members : tuple of ForestMember
        Those with a share.
    member_weights : tuple of float
    features : TreeFeatures
        What the trees split by.
    raw_target : TargetModel or None
        Of members that learned the raw scale.
    neighbors : Neighbors or None
        Nearest rows, as the first network sees them, if they have a share.
    neighbor_weight : float
    """

    network_weight: float
    members: tuple[ForestMember, ...]
    member_weights: tuple[float, ...]
    features: TreeFeatures
    raw_target: TargetModel | None = None
    neighbors: Neighbors | None = None
    neighbor_weight: float = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Share of each member, the networks first."""
        names = [NETWORKS, *(member.name for member in self.members)]
        shares = dict(zip(names, (self.network_weight, *self.member_weights), strict=True))
        return shares if self.neighbors is None else shares | {NEIGHBORS: self.neighbor_weight}

    def predict(
        self,
        networks: NDArray[np.float64],
        table: EncodedTable,
        target: TargetModel,
        model: TabNSM | Ensemble,
    ) -> NDArray[np.float64]:
        """The weighted mean.

        Parameters
        ----------
        networks : ndarray of float64, shape (n,)
            What the networks predict, in the target's units.
        table : EncodedTable
            The same rows.
        target : TargetModel
            Of the networks.
        model : TabNSM or Ensemble
            The networks.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        if not table.n_rows or (not self.members and self.neighbors is None):
            return networks
        others = member_predictions(self.members, self.features, table, target, self.raw_target)
        blended = self.network_weight * networks
        for weight, prediction in zip(self.member_weights, others, strict=True):
            blended += weight * prediction
        if self.neighbors is not None:
            seen = last_stage(networks_of(model)[0], table)
            standard = self.neighbors.predict(seen)[:, None]
            blended += self.neighbor_weight * target.predict(standard, table)[:, 0]
        return blended

    def to_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors, and JSON-able facts."""
        tensors = {f"features.{k}": tensor for k, tensor in self.features.to_state().items()}
        entries = []
        for k, (member, weight) in enumerate(zip(self.members, self.member_weights, strict=True)):
            arrays, facts = member.forest.to_state()
            tensors |= {f"{k}.{name}": tensor for name, tensor in arrays.items()}
            entries.append(
                {"name": member.name, "weight": weight, "on_raw_scale": member.on_raw_scale}
                | {"n_trees": member.forest.n_trees, "forest": facts}
            )
        raw = None
        if self.raw_target is not None:
            arrays, raw = self.raw_target.to_state()
            tensors |= {f"raw_target.{name}": tensor for name, tensor in arrays.items()}
        nearest = None
        if self.neighbors is not None:
            points, nearest = self.neighbors.to_state()
            tensors |= {f"neighbors.{name}": tensor for name, tensor in points.items()}
            nearest = nearest | {"name": NEIGHBORS, "weight": self.neighbor_weight}
        meta = {
            "network_weight": self.network_weight,
            "members": entries,
            "raw_target": raw,
            "neighbors": nearest,
        }
        return tensors, meta

    @classmethod
    def from_state(
        cls, tensors: Mapping[str, Tensor], meta: Mapping[str, Any], category_sizes: Sequence[int]
    ) -> Blend:
        """Read back :meth:`to_state`; `category_sizes` are those of the encoder."""

        def part(prefix: str) -> dict[str, Tensor]:
            found = {k: v for k, v in tensors.items() if k.startswith(prefix)}
            return {name.removeprefix(prefix): tensor for name, tensor in found.items()}

        members = tuple(
            ForestMember(
                entry["name"],
                Forest.from_state(part(f"{k}."), entry["forest"]),
                entry["on_raw_scale"],
            )
            for k, entry in enumerate(meta["members"])
        )
        raw, nearest = meta["raw_target"], meta["neighbors"]
        return cls(
            meta["network_weight"],
            members,
            tuple(entry["weight"] for entry in meta["members"]),
            TreeFeatures.from_state(part("features."), category_sizes),
            None
            if raw is None
            else TargetModel.from_state(part("raw_target."), raw, category_sizes),
            None if nearest is None else Neighbors.from_state(part("neighbors."), nearest),
            0.0 if nearest is None else nearest["weight"],
        )


def member_predictions(
    members: Sequence[ForestMember],
    features: TreeFeatures,
    table: EncodedTable,
    target: TargetModel,
    raw_target: TargetModel | None,
) -> NDArray[np.float64]:
    """What each member predicts, (n_members, n), in the target's units.

    Parameters
    ----------
    members : sequence of ForestMember
    features : TreeFeatures
    table : EncodedTable
    target, raw_target : TargetModel
        Of the members on the networks' scale and on the raw one.
    """
    predictions = np.empty((len(members), table.n_rows))
    size = max(1, _CHUNK_VALUES // max(table.n_features, 1))
    for first in range(0, table.n_rows, size):
        rows = torch.arange(first, min(first + size, table.n_rows))
        part = table.take(rows)
        x = features.transform(part)
        for k, member in enumerate(members):
            scale = raw_target if member.on_raw_scale and raw_target is not None else target
            standard = member.forest.predict(x)[:, None]  # (n, 1)
            predictions[k, first : first + size] = scale.predict(standard, part)[:, 0]
    return predictions
