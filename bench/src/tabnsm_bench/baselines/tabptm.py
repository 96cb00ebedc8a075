"""TabPTM: a row is described by its nearest training rows, and a network reads the description.

Written from the paper (Ye et al., 2023). The description (meta-representation) of a row has the
same size for every table: distances to the nearest training rows, nearest first, and their
targets. Its authors train the network on many tables together and apply it to new ones. Their
weights are not published in a package, so that here the network is trained on the
descriptions of the table itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tabnsm_bench.baselines.common import Columns, TargetScale, draw_rows
from tabnsm_bench.baselines.networks import Flat
from tabnsm_bench.baselines.ptarl import Backbone
from tabnsm_bench.baselines.torch_models import NetworkMethod
from tabnsm_bench.protocol import Part, Prepared

_DEFAULTS = {"n_neighbours": 16, "n_blocks": 3, "d_block": 256, "dropout": 0.1}
_NOTE = "trained on this table alone: the authors' pretrained weights are not published"
_WEIGHT_ROWS = 5000


class MetaRepresentation:
    """Describe rows by their nearest training rows.

    Features count by their mutual information with the target, as in the paper. Distances are in
    units of the mean distance to the nearest training row.

    Parameters
    ----------
    columns : Columns
        Which features are codes; they are one-hot here.
    n_neighbours : int
        Training rows that describe a row.

    Examples
    --------
    >>> x = np.arange(12, dtype=np.float32)[:, None]
    >>> meta = MetaRepresentation(Columns((0,)), n_neighbours=2).fit(x, x[:, 0])
    >>> meta.transform(np.array([[3.25]], dtype=np.float32)).round(2).tolist()
    [[0.25, 0.75, 3.0, 4.0]]
    """

    def __init__(self, columns: Columns, n_neighbours: int) -> None:
        self.columns = columns
        self.n_neighbours = n_neighbours

    def fit(self, x: NDArray[np.float32], y: NDArray[Any]) -> MetaRepresentation:
        """Remember the training rows.

        Shape
        -----
        x : (n, D)
        y : (n,)
        """
        from sklearn.feature_selection import mutual_info_regression
        from sklearn.neighbors import NearestNeighbors

        hot = self.columns.one_hot(x)
        rows = draw_rows(len(y), _WEIGHT_ROWS, seed=0)
        shares = mutual_info_regression(hot[rows], y[rows], random_state=0)
        self.weights = (shares / shares.sum() if shares.sum() else np.ones(len(shares))) ** 0.5
        self.y = np.asarray(y, dtype=np.float32)
        self.index = NearestNeighbors(n_neighbors=self.n_neighbours).fit(hot * self.weights)
        nearest = self._neighbours(None)[0][:, 0]
        self.unit = float(nearest.mean()) or 1.0
        return self

    def transform(self, x: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Describe rows; None is for the training rows, each without itself.

        Shape
        -----
        x : (n, D)
        returned : (n, 2 n_neighbours)
        """
        distances, rows = self._neighbours(x)
        return np.hstack([distances / self.unit, self.y[rows]]).astype(np.float32)

    def _neighbours(self, x: NDArray[np.float32] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        rows = None if x is None else self.columns.one_hot(x) * self.weights
        distances, found = self.index.kneighbors(rows)
        return distances, found


class TabPTM(NetworkMethod):
    """A network on descriptions in place of rows."""

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        n_neighbours = min(self.options["n_neighbours"], len(data.train.y) - 1)
        self.meta = MetaRepresentation(Columns(data.category_sizes), n_neighbours)
        self.meta.fit(data.train.x, TargetScale.of(data.train.y).apply(data.train.y))
        described = replace(
            data,
            train=Part(self.meta.transform(None), data.train.y),
            validation=Part(self.meta.transform(data.validation.x), data.validation.y),
            category_sizes=(0,) * (2 * n_neighbours),
        )
        facts = super().fit(described, seed=seed, time_limit=time_limit, n_threads=n_threads)
        return facts | {"notes": [_NOTE, *facts["notes"]]}

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return super().predict(self.meta.transform(x), frame)


def tabptm(**given: Any) -> TabPTM:
    """The method."""

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        names = ("n_blocks", "d_block", "dropout")
        backbone = Backbone(len(columns.sizes), **{name: options[name] for name in names})
        return Flat(columns, nn.Sequential(backbone, nn.Linear(options["d_block"], 1)))

    return TabPTM("TabPTM", "tabnsm", build, _DEFAULTS, {}, given)
