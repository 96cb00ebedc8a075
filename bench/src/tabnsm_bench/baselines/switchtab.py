"""SwitchTab: the network of ts3l, first trained to tell a row's own features from shared ones.

In the first phase pairs of rows, with some of their features replaced, are encoded; each row is
rebuilt from its own part and either row's shared part, and the target is predicted, too. The
second phase is an ordinary training of the encoder and its linear head. The package's module
for the first phase pairs rows by the wrong length; its network is used without it.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tabnsm.training.config import TrainingConfig
from tabnsm_bench.baselines.common import Columns, Curve
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.torch_models import NetworkMethod, Pace, batches, make_optimizer
from tabnsm_bench.protocol import Prepared

_DEFAULTS = {
    "d_block": 256,
    "n_blocks": 3,
    "dropout": 0.1,
    "corruption_rate": 0.3,
    "task_weight": 1.0,
    "first_phase_epochs": 20,
}
_FIRST_SHARE = 1 / 4  # of the time limit


class SwitchTab(NetworkMethod):
    """The two phases."""

    def make_network(self, data: Prepared, config: TrainingConfig) -> nn.Module:
        """Build the network, and train its first phase."""
        flat = self.build(self.columns, self.options)
        assert isinstance(flat, Flat)
        x = torch.from_numpy(self.columns.one_hot(data.train.x).astype(np.float32))
        y = torch.from_numpy(self.scale.apply(data.train.y).astype(np.float32))
        flat.network.set_first_phase()  # type: ignore[operator]
        self._first_phase(flat.network, x, y, config)
        flat.network.set_second_phase(freeze_encoder=False)  # type: ignore[operator]
        return flat

    def _first_phase(
        self, network: nn.Module, x: Tensor, y: Tensor, config: TrainingConfig
    ) -> None:
        optimizer = make_optimizer(network, config)
        limit = None if config.time_limit is None else _FIRST_SHARE * config.time_limit
        pace = Pace(limit, Curve(), n_validation=0)
        batch_size = config.resolved_batch_size(len(y))
        network.train()
        for _ in range(min(self.options["first_phase_epochs"], config.max_epochs)):
            for rows in batches(len(y), batch_size):
                if pace.must_stop():
                    return
                rows = rows[: len(rows) // 2 * 2]  # pairs
                if not len(rows):
                    continue
                optimizer.zero_grad()
                loss = self._loss(network, x, x[rows], y[rows])
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), config.gradient_clip)
                optimizer.step()
                pace.learnt(len(rows))

    def _loss(self, network: nn.Module, x: Tensor, rows: Tensor, y: Tensor) -> Tensor:
        """Errors of the four rebuilt halves, and of the prediction.

        Shape
        -----
        x : (n, d)
        rows : (B, d)
        y : (B,)
        returned : ()
        """
        replaced = torch.rand_like(rows) < self.options["corruption_rate"]
        drawn = torch.randint(len(x), rows.shape)
        other = x.gather(0, drawn)  # each feature from a row of its own
        rebuilt, predicted = network(torch.where(replaced, other, rows))  # (2 B, d), (B, 1)
        first, second = rows.chunk(2)
        wanted = torch.cat([first, first, second, second])
        task = ((predicted.squeeze(1) - y) ** 2).mean()
        loss: Tensor = ((rebuilt - wanted) ** 2).mean() + self.options["task_weight"] * task
        return loss


def switchtab(**given: Any) -> SwitchTab:
    """The method."""
    models = importlib.import_module("ts3l.models")
    embeddings = importlib.import_module("ts3l.utils.embedding_utils")
    backbones = importlib.import_module("ts3l.utils.backbone_utils")

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        d_in = columns.n_numbers + sum(columns.category_sizes)
        backbone = backbones.MLPBackboneConfig(
            input_dim=d_in,
            hidden_dims=options["d_block"],
            output_dim=options["d_block"],
            n_hiddens=options["n_blocks"],
            dropout_rate=options["dropout"],
        )
        identity = embeddings.IdentityEmbeddingConfig(input_dim=d_in)
        return Flat(columns, models.SwitchTab(identity, backbone, output_dim=1))

    return SwitchTab("SwitchTab", "ts3l", build, _DEFAULTS, {}, given)
