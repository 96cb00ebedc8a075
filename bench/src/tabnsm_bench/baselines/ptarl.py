"""PTaRL: rows as coordinates among prototypes.

Written from the paper (Ye et al., ICLR 2024). A first network is trained as usual; the centres of
its representations are the prototypes. A second one, from new weights, places each row among
them: it predicts from the mixture of prototypes that the row's coordinates give. Three losses
keep that space in order: a row is near the prototypes that it is made of, rows with different
targets have different coordinates, and prototypes point in different directions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tabnsm.training.config import TrainingConfig
from tabnsm_bench.baselines.common import Columns, draw_rows
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.torch_models import (
    NetworkMethod,
    as_tensors,
    predict_network,
    train_network,
)
from tabnsm_bench.protocol import Prepared

_DEFAULTS = {
    "n_blocks": 3,
    "d_block": 256,
    "dropout": 0.1,
    "n_prototypes": 16,
    "n_bins": 8,
    "projection_weight": 0.1,
    "diversity_weight": 0.1,
    "orthogonality_weight": 0.1,
}
# Of the epochs and of the time, for the network that the prototypes are taken from.
_FIRST_SHARE = 1 / 4
_CLUSTER_ROWS = 20_000


class Backbone(nn.Sequential):
    """Plain layers up to the representation.

    Examples
    --------
    >>> Backbone(5, n_blocks=2, d_block=8, dropout=0.0)(torch.zeros(3, 5)).shape
    torch.Size([3, 8])
    """

    def __init__(self, d_in: int, n_blocks: int, d_block: int, dropout: float) -> None:
        layers: list[nn.Module] = []
        for position in range(n_blocks):
            linear = nn.Linear(d_in if position == 0 else d_block, d_block)
            layers += [linear, nn.ReLU(), nn.Dropout(dropout)]
        super().__init__(*layers)


class PrototypeNetwork(nn.Module):
    """A prediction from the mixture of prototypes that a row's coordinates give.

    Parameters
    ----------
    backbone : nn.Module
        From rows to representations.
    prototypes : Tensor
        Where the prototypes start; they are trained, too.
    options : dict
        Weights of the losses, and bins of the target.

    Shape
    -----
    x : (B, d_in)
    prototypes : (K, d)
    returned : (B, 1)
    """

    def __init__(self, backbone: nn.Module, prototypes: Tensor, options: dict[str, Any]) -> None:
        super().__init__()
        n_prototypes, d = prototypes.shape
        self.backbone = backbone
        self.prototypes = nn.Parameter(prototypes.clone())
        self.estimator = nn.Linear(d, n_prototypes)
        self.output = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 1))
        self.options = options
        self.seen: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Predict."""
        represented = self.backbone(x)  # (B, d)
        coordinates = self.estimator(represented).softmax(dim=1)  # (B, K)
        self.seen = (represented, coordinates) if self.training else None
        output: Tensor = self.output(coordinates @ self.prototypes)
        return output

    def extra_loss(self, target: Tensor) -> Tensor:
        """The three losses on the rows of the last forward pass.

        Shape
        -----
        target : (B,)
        returned : ()
        """
        assert self.seen is not None
        represented, coordinates = self.seen
        options = self.options
        total: Tensor = (
            options["projection_weight"] * self._projection(represented, coordinates)
            + options["diversity_weight"] * diversity_loss(coordinates, target, options["n_bins"])
            + options["orthogonality_weight"] * orthogonality_loss(self.prototypes)
        )
        return total

    def _projection(self, represented: Tensor, coordinates: Tensor) -> Tensor:
        """Cost of moving a row to the prototypes that it is said to be made of."""
        directions = functional.normalize(self.prototypes, dim=1)
        distance = 1 - functional.normalize(represented, dim=1) @ directions.T  # (B, K)
        return (coordinates * distance).sum(dim=1).mean()


def diversity_loss(coordinates: Tensor, target: Tensor, n_bins: int) -> Tensor:
    """Mean cosine between the coordinates of rows whose targets are in different bins.

    Shape
    -----
    coordinates : (B, K)
    target : (B,)
    returned : ()

    Examples
    --------
    >>> apart = diversity_loss(torch.eye(2), torch.tensor([0.0, 1.0]), n_bins=2)
    >>> same = diversity_loss(torch.ones(2, 2), torch.tensor([0.0, 1.0]), n_bins=2)
    >>> round(float(apart), 3), round(float(same), 3)
    (0.0, 1.0)
    """
    ranks = target.argsort().argsort()
    bins = ranks * n_bins // len(target)
    differ = (bins[:, None] != bins).to(coordinates.dtype)
    unit = functional.normalize(coordinates, dim=1)
    return (differ * (unit @ unit.T)).sum() / differ.sum().clamp(min=1)


def orthogonality_loss(prototypes: Tensor) -> Tensor:
    """Mean squared cosine between different prototypes.

    Examples
    --------
    >>> float(orthogonality_loss(torch.eye(3))), float(orthogonality_loss(torch.ones(3, 3)).round())
    (0.0, 1.0)
    """
    unit = functional.normalize(prototypes, dim=1)
    cosines = (unit @ unit.T).square()
    n = len(prototypes)
    return (cosines.sum() - cosines.diagonal().sum()) / max(1, n * (n - 1))


class PTaRL(NetworkMethod):
    """The two trainings."""

    def make_network(self, data: Prepared, config: TrainingConfig) -> nn.Module:
        """Train the first network, and place the prototypes at its centres."""
        options = self.options
        first = Flat(
            self.columns, nn.Sequential(self._backbone(), nn.Linear(options["d_block"], 1))
        )
        limit = config.time_limit
        short = replace(
            config,
            max_epochs=max(1, int(_FIRST_SHARE * config.max_epochs)),
            time_limit=None if limit is None else _FIRST_SHARE * limit,
        )
        train_network(first, data, self.columns, self.scale, short)
        prototypes = self._centres(first, data)
        return Flat(self.columns, PrototypeNetwork(self._backbone(), prototypes, options))

    def _backbone(self) -> Backbone:
        d_in = self.columns.n_numbers + sum(self.columns.category_sizes)
        names = ("n_blocks", "d_block", "dropout")
        return Backbone(d_in, **{name: self.options[name] for name in names})

    def _centres(self, first: Flat, data: Prepared) -> Tensor:
        """Centres of the first network's representations; (K, d_block)."""
        from sklearn.cluster import KMeans

        assert isinstance(first.network, nn.Sequential)
        rows = draw_rows(len(data.train.y), _CLUSTER_ROWS, seed=0)
        seen: list[Tensor] = []
        hook = first.network[0].register_forward_hook(lambda _, x, out: seen.append(out))
        predict_network(first, *as_tensors(self.columns, data.train.x[rows]))
        hook.remove()
        n_clusters = min(self.options["n_prototypes"], len(rows))
        centres = KMeans(n_clusters, n_init=1, random_state=0).fit(torch.cat(seen).numpy())
        return torch.from_numpy(centres.cluster_centers_.astype(np.float32))


def ptarl(**given: Any) -> PTaRL:
    """The method."""

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        raise NotImplementedError  # make_network needs the training rows

    return PTaRL("PTaRL", "tabnsm", build, _DEFAULTS, {}, given)
