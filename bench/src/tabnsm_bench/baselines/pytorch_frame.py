"""ExcelFormer: the network of pytorch-frame on the shared loop."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tabnsm.training.config import TrainingConfig
from tabnsm_bench.baselines.common import Columns, draw_rows
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.target_statistics import TargetStatistics
from tabnsm_bench.baselines.torch_models import NetworkMethod
from tabnsm_bench.protocol import Part, Prepared

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

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. A category is one number, its mean target, as in the paper."""
        self.statistics = TargetStatistics(Columns(data.category_sizes))
        encoded = replace(
            data,
            train=Part(self.statistics.fit(data.train.x, data.train.y, seed), data.train.y),
            validation=Part(self.statistics.transform(data.validation.x), data.validation.y),
            category_sizes=(0,) * len(data.category_sizes),
        )
        return super().fit(encoded, seed=seed, time_limit=time_limit, n_threads=n_threads)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return super().predict(self.statistics.transform(x), frame)

    def make_network(self, data: Prepared, config: TrainingConfig) -> nn.Module:
        """Sort the features by their mutual information with the target, as the package does."""
        from sklearn.feature_selection import mutual_info_regression

        rows = draw_rows(len(data.train.y), _SORT_ROWS, seed=0)
        x = data.train.x[rows]
        scores = mutual_info_regression(x, data.train.y[rows], random_state=0)
        order = torch.from_numpy((-scores).argsort(kind="stable").copy())
        return Flat(self.columns, Sorted(self.build(self.columns, self.options), order))


def excelformer(**given: Any) -> ExcelFormer:
    """The method."""
    library = importlib.import_module("torch_frame")
    models = importlib.import_module("torch_frame.nn.models.excelformer")
    statistics = importlib.import_module("torch_frame.data.stats").StatType

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        n_features = columns.n_numbers
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
