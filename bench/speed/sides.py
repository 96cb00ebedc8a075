"""The sides of a comparison: the default TabNSM as it trains, and its peers with their defaults.

Peers are imported when they are built; one that is not installed raises `MissingPeerError`, which
names the pip line.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tabnsm.columns.bins import find_bins
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.encoded import EncodedTable
from tabnsm.nn import TabNSM
from tabnsm.target import TargetConfig, TargetModel
from tabnsm.training.averaging import WeightAverage
from tabnsm.training.config import TrainingConfig
from tabnsm.training.descent import make_optimizer
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm.training.loop import Trainer, TrainingState
from tabnsm.training.objective import Objective, ObjectiveConfig
from tabnsm.training.rise import RiseConfig, RiseSampler
from tabnsm.training.rows import TrainingData

TABNSM = "TabNSM"


class MissingPeerError(ImportError):
    """A peer is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed: pip install {package}")


def peer(module: str, package: str) -> ModuleType:
    """Import a peer, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeerError(package) from error


def random_table(n_rows: int, n_features: int) -> EncodedTable:
    """Encoded rows of numbers, the same at every call."""
    generator = torch.Generator().manual_seed(0)
    return EncodedTable(torch.randn(n_rows, n_features, generator=generator))


def make_tabnsm(table: EncodedTable, generator: torch.Generator | None = None) -> TabNSM:
    """The module with the estimator's defaults, its bins fitted to this table."""
    n_features, n_bins = table.n_features, EncoderConfig().n_bins
    is_number = np.ones(n_features, dtype=bool)
    bins = find_bins(table.dense.numpy(), None, is_number, n_features, n_bins)
    return TabNSM(n_features, bins=bins, generator=generator)


def make_trainer(
    table: EncodedTable, *, batch_size: int, objective: ObjectiveConfig | None = None
) -> tuple[Trainer, TrainingState]:
    """Trainer and state of the default model on a table, ready for ``trainer.train_step``."""
    generator = torch.Generator().manual_seed(0)
    target = table.dense[:, :1].double().numpy()
    few = EncodedTable(table.dense[:16])
    config = TrainingConfig(batch_size=batch_size)
    model = make_tabnsm(table, generator)
    trainer = Trainer(
        config,
        Objective(objective or ObjectiveConfig()),
        TargetModel.fit(target, None, TargetConfig(clip_predictions=False)),
        TrainingData(table, target, None, few, target[:16], None),
        torch.device("cpu"),
    )
    state = TrainingState(
        model=model,
        optimizer=make_optimizer(model, config),
        average=WeightAverage(model, config.ema_decay),
        sampler=RiseSampler(table.n_rows, RiseConfig(), generator),
        monitor=ValidationMonitor(config.patience, config.scheduler_patience),
        generator=generator,
        best_weights={},
    )
    model.train()
    return trainer, state


class Peer(NamedTuple):
    """A module and how it turns (B, D) into (B, k) predictions."""

    model: nn.Module
    call: Callable[[Tensor], Tensor]


def make_tabm(n_features: int) -> Peer:
    """TabM with the package's defaults: 3 blocks of 512, an ensemble of 32."""
    model = peer("tabm", "tabm").TabM.make(n_num_features=n_features, d_out=1, k=32)
    return Peer(model, lambda x: model(x).squeeze(-1))  # (B, k)


def make_ft_transformer(n_features: int) -> Peer:
    """FT-Transformer with its authors' defaults: 3 blocks of 192, 8 heads."""
    cls = peer("rtdl_revisiting_models", "rtdl_revisiting_models").FTTransformer
    defaults = cls.get_default_kwargs()
    model = cls(n_cont_features=n_features, cat_cardinalities=[], d_out=1, **defaults)
    return Peer(model, lambda x: model(x, None))  # (B, 1)


def make_mlp(n_features: int) -> Peer:
    """Two hidden layers of 512."""
    model = nn.Sequential(
        nn.Linear(n_features, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
    )
    return Peer(model, model)  # (B, 1)


PEERS: dict[str, Callable[[int], Peer]] = {
    "TabM": make_tabm,
    "FT-Transformer": make_ft_transformer,
    "MLP 512-512": make_mlp,
}


def make_peers(names: tuple[str, ...], n_features: int) -> tuple[dict[str, Peer], list[str]]:
    """Those of the peers that are installed, and what to say of the others."""
    torch.manual_seed(0)
    found: dict[str, Peer] = {}
    missing: list[str] = []
    for name in names:
        try:
            found[name] = PEERS[name](n_features)
        except MissingPeerError as error:
            missing.append(str(error))
    return found, missing


def peer_step(side: Peer, table: EncodedTable) -> Callable[[Tensor], Any]:
    """A training step on the given rows: mean squared error of all k outputs, fused AdamW."""
    optimizer = torch.optim.AdamW(side.model.parameters(), lr=1e-3, fused=True)
    target = table.dense[:, 0]
    side.model.train()

    def step(rows: Tensor) -> None:
        error = side.call(table.gather(rows)) - target[rows, None]  # (B, k)
        optimizer.zero_grad(set_to_none=True)
        error.square().mean().backward()
        optimizer.step()

    return step
