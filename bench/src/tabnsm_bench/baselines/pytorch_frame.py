"""ExcelFormer: the network of pytorch-frame on the shared loop."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns, draw_rows
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.torch_models import NetworkMethod
from tabnsm_bench.protocol import Prepared

_DEFAULTS = {
    "in_channels": 128,
    "num_layers": 3,
    "num_heads": 8,
    "diam_dropout": 0.0,
    "aium_dropout": 0.0,
    "residual_dropout": 0.0,
}
# Mutual information takes neighbours in every feature; a sample orders them well enough.
_SORT_ROWS = 5000


class Sorted(nn.Module):
    """The network on features in the order of their importance, as it assumes them.

    Parameters
    ----------
    network : nn.Module
        ExcelFormer.
    order : Tensor
        Positions of the features, the most informative first.

    Shape
    -----
    x : (B, d)
    returned : (B, 1)
    """

    order: Tensor

    def __init__(self, network: nn.Module, order: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("order", order)
        self.frames = importlib.import_module("torch_frame")
        self.names = [str(position) for position in range(len(order))]

    def forward(self, x: Tensor) -> Tensor:
        """Predict."""
        kind = self.frames.stype.numerical
        frame = self.frames.TensorFrame({kind: x[:, self.order]}, {kind: self.names})
        output: Tensor = self.network(frame)
        return output


class ExcelFormer(NetworkMethod):
    """Attention from less to more informative features; without the mix-up of rows."""

    def make_network(self, data: Prepared) -> nn.Module:
        """Sort the features by their mutual information with the target, as the package does."""
        from sklearn.feature_selection import mutual_info_regression

        rows = draw_rows(len(data.train.y), _SORT_ROWS, seed=0)
        x = self.columns.one_hot(data.train.x[rows])
        scores = mutual_info_regression(x, data.train.y[rows], random_state=0)
        order = torch.from_numpy((-scores).argsort(kind="stable").copy())
        return Flat(self.columns, Sorted(self.build(self.columns, self.options), order))


def excelformer(**given: Any) -> ExcelFormer:
    """The method."""
    library = importlib.import_module("torch_frame")
    models = importlib.import_module("torch_frame.nn.models.excelformer")
    statistics = importlib.import_module("torch_frame.data.stats").StatType

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        n_features = columns.n_numbers + sum(columns.category_sizes)
        names = [str(position) for position in range(n_features)]
        standard = {statistics.MEAN: 0.0, statistics.STD: 1.0}
        network: nn.Module = models.ExcelFormer(
            out_channels=1,
            num_cols=n_features,
            col_stats=dict.fromkeys(names, standard),
            col_names_dict={library.stype.numerical: names},
            **options,
        )
        return network

    return ExcelFormer("ExcelFormer", "pytorch-frame", build, _DEFAULTS, {}, given)
