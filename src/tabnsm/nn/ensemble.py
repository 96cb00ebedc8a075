"""Ensemble: several networks that predict together."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from tabnsm.nn.config import ArchitectureConfig
from tabnsm.nn.model import TabNSM


class Ensemble(nn.Module):
    """The mean of several TabNSM networks of one architecture.

    Parameters
    ----------
    networks : iterable of TabNSM
        At least one.

    Shape
    -----
    (B, D) -> (B, t)

    Examples
    --------
    >>> pair = [TabNSM(n_features=3, d_token=8), TabNSM(n_features=3, d_token=8)]
    >>> x = torch.randn(2, 3)
    >>> torch.allclose(Ensemble(pair)(x), (pair[0](x) + pair[1](x)) / 2)
    True
    """

    def __init__(self, networks: Iterable[TabNSM]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([network(x) for network in self.networks]).mean(dim=0)

    @property
    def config(self) -> ArchitectureConfig:
        """Options that all networks share."""
        return networks_of(self)[0].config

    @property
    def n_features(self) -> int:
        """Number of encoded features."""
        return networks_of(self)[0].n_features

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return networks_of(self)[0].n_targets

    @property
    def rows_are_independent(self) -> bool:
        """Whether predictions without gradients are the same, to the bit, in any batch."""
        return all(network.rows_are_independent for network in networks_of(self))


def for_target(model: TabNSM | Ensemble, place: int) -> TabNSM | Ensemble:
    """The same model, with shared weights, of which only one of several targets is predicted."""
    if model.n_targets == 1:
        return model
    return join_networks([network.for_target(place) for network in networks_of(model)])


def networks_of(model: TabNSM | Ensemble) -> list[TabNSM]:
    """The networks of an ensemble, or the one network that it is."""
    return list(model.networks) if isinstance(model, Ensemble) else [model]  # type: ignore[arg-type]


def join_networks(networks: list[TabNSM]) -> TabNSM | Ensemble:
    """One network as it is, several as an ensemble."""
    return networks[0] if len(networks) == 1 else Ensemble(networks)
