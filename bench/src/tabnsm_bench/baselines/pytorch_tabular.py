"""DANets: the backbone of pytorch-tabular on the shared loop."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.torch_models import NetworkMethod

# The package's own defaults, but for a ghost batch that fits into batches of 16 to 256 rows.
_DEFAULTS = {"n_layers": 8, "abstlay_dim_1": 32, "abstlay_dim_2": 64, "k": 5, "dropout_rate": 0.1}
_GHOST_BATCH = 128


def danets(**given: Any) -> NetworkMethod:
    """Layers that each group and abstract a few features."""
    library = importlib.import_module("pytorch_tabular.models.danet.danet")

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        d_in = columns.n_numbers + sum(columns.category_sizes)
        backbone = library.DANetBackbone(
            n_continuous_features=d_in,
            cat_embedding_dims=[],
            **options,
            block_activation=nn.LeakyReLU(),
            virtual_batch_size=_GHOST_BATCH,
            embedding_dropout=0.0,
            batch_norm_continuous_input=False,
        )
        return Flat(columns, nn.Sequential(backbone, nn.Linear(backbone.output_dim, 1)))

    training = {"learning_rate": 2e-3}
    return NetworkMethod("DANets", "pytorch-tabular", build, _DEFAULTS, training, given)
