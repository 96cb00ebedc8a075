"""Trees and nearest rows of a blend in operators that ONNX has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from tabnsm.blend import Blend
from tabnsm.blend.features import MAX_CODES, TreeFeatures
from tabnsm.blend.forest import N_CODES, Forest
from tabnsm.blend.neighbors import Neighbors
from tabnsm.export.network import OnnxNetwork
from tabnsm.functional.staging import staged_prediction
from tabnsm.intervals.difficulty import Difficulty


class OnnxMembers(nn.Module):
    """Standardised predictions of everything in a blend but its networks.

    Parameters
    ----------
    blend : Blend
    network : OnnxNetwork
        The first network, by which nearest rows are found.

    Shape
    -----
    (B, D) -> (B, n_members), the nearest rows last
    """

    def __init__(self, blend: Blend, network: OnnxNetwork) -> None:
        super().__init__()
        self.columns = OnnxTreeColumns(blend.features)
        self.forests = nn.ModuleList(OnnxForest(member.forest) for member in blend.members)
        self.nearest = None
        if blend.neighbors is not None:
            self.nearest = OnnxNeighbors(blend.neighbors, network)

    def forward(self, features: Tensor) -> Tensor:
        columns = self.columns(features) if len(self.forests) else features
        found = [forest(columns) for forest in self.forests]
        if self.nearest is not None:
            found.append(self.nearest(features))
        return torch.stack(found, dim=1)


class OnnxDifficulty(nn.Module):
    """How hard rows are to predict, in mean errors of each target, for intervals and quantiles.

    Takes the features of rows and, beside them, what the networks predict.

    Shape
    -----
    (B, D + t) -> (B, t)
    """

    def __init__(self, difficulties: Sequence[Difficulty]) -> None:
        super().__init__()
        self.n_targets = len(difficulties)
        self.columns = nn.ModuleList(OnnxTreeColumns(d.features) for d in difficulties)
        self.forests = nn.ModuleList(OnnxForest(d.forest) for d in difficulties)

    def forward(self, features: Tensor) -> Tensor:
        x, standard = features[:, : -self.n_targets], features[:, -self.n_targets :]
        return torch.stack(
            [
                forest(torch.cat([columns(x), standard], dim=1))
                for columns, forest in zip(self.columns, self.forests, strict=True)
            ],
            dim=1,
        )


class OnnxTreeColumns(nn.Module):
    """Columns of `TreeFeatures`.

    Shape
    -----
    (B, D) -> (B, D')
    """

    feature: Tensor
    first: Tensor
    values: Tensor
    numbers: Tensor

    def __init__(self, features: TreeFeatures) -> None:
        super().__init__()
        sizes = features.category_sizes
        categories = [k for k, size in enumerate(sizes) if size]
        few = [k for k in categories if sizes[k] <= MAX_CODES + 1]
        both = zip(features.means, features.counts, strict=True)
        tables = [*features.codes, *(table for pair in both for table in pair)]
        ends = np.cumsum([0, *map(len, tables)])
        values = np.concatenate([np.empty(0, np.float32), *tables])
        places = [*few, *np.repeat(categories, 2).tolist()]
        self.register_buffer("feature", torch.tensor(places, dtype=torch.int64))
        self.register_buffer("first", torch.from_numpy(ends[:-1]))
        self.register_buffer("values", torch.from_numpy(values))
        numbers = [k for k, size in enumerate(sizes) if not size]
        self.register_buffer("numbers", torch.tensor(numbers, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        numbers = x.index_select(1, self.numbers)
        if not len(self.feature):
            return numbers
        codes = x.index_select(1, self.feature).long() + self.first
        return torch.cat([self.values[codes], numbers], dim=1)


class OnnxForest(nn.Module):
    """The sum of trees, level by level for all trees at once.

    Shape
    -----
    (B, D') -> (B,)
    """

    def __init__(self, forest: Forest) -> None:
        super().__init__()
        self.start, self.depth = forest.start, forest.depth
        self.has_sets = bool(len(forest.categories))
        arrays = {
            **{name: getattr(forest, name).astype(np.int64) for name in ("roots", "feature")},
            **{name: getattr(forest, name).astype(np.int64) for name in ("left", "right")},
            **{name: getattr(forest, name) for name in ("threshold", "missing_left", "value")},
        }
        if self.has_sets:
            arrays["set_at"] = forest.category_set.astype(np.int64) * N_CODES
            arrays["in_set"] = forest.categories.reshape(-1)
        for name, array in arrays.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(array)))

    def forward(self, columns: Tensor) -> Tensor:
        tree = dict(self.named_buffers())
        node = tree["roots"].expand(columns.shape[0], -1)  # (B, n_trees)
        for _ in range(self.depth):
            value = columns.gather(1, tree["feature"][node])
            goes_left = value <= tree["threshold"][node]
            if self.has_sets:
                at = tree["set_at"][node]
                code = torch.nan_to_num(value, nan=0.0).clamp(0, N_CODES - 1).long()
                by_set = at >= 0
                # Not torch.where, which onnxruntime does not have for truth values.
                goes_left = by_set & tree["in_set"][at.clamp(min=0) + code] | ~by_set & goes_left
            is_missing = torch.isnan(value)
            goes_left = is_missing & tree["missing_left"][node] | ~is_missing & goes_left
            node = torch.where(goes_left, tree["left"][node], tree["right"][node])
        return (tree["value"][node].double().sum(1) + self.start).float()


class OnnxNeighbors(nn.Module):
    """The mean target of the training rows that a network sees as most alike.

    Shape
    -----
    (B, D) -> (B,)
    """

    def __init__(self, neighbors: Neighbors, network: OnnxNetwork) -> None:
        super().__init__()
        self.network = network
        self.n_neighbors = neighbors.n_neighbors
        for name in ("center", "axes", "points", "values"):
            self.register_buffer(name, getattr(neighbors, name))

    def forward(self, features: Tensor) -> Tensor:
        center, axes, points, values = (
            cast(Tensor, getattr(self, name)) for name in ("center", "axes", "points", "values")
        )
        place = (self._stages(features) - center) @ axes  # (B, n_axes)
        size = (points**2).sum(dim=1)
        distance = size + (place**2).sum(dim=1, keepdim=True) - 2 * place @ points.T
        nearest, rows = distance.topk(self.n_neighbors, dim=1, largest=False)
        weight = 1 / (nearest.clamp(min=0.0) + 1e-6 * size.mean() + 1e-12).double()
        return ((weight * values[rows]).sum(dim=1) / weight.sum(dim=1)).float()

    def _stages(self, features: Tensor) -> Tensor:
        """What the last stage of the head sees."""
        head, kept = self.network.head, []

        def keep(stages: Tensor) -> Tensor:
            kept.append(stages)
            return stages[:, -1:]

        maps = (head.mlp1, head.dec1, head.mlp2, head.dec2, head.mlp3)
        staged_prediction(self.network.summary(features), *maps, keep)
        return kept[0]
