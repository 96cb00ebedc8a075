"""DNNR, from the package dnnr: nearest neighbours, each with a local gradient."""

from __future__ import annotations

import importlib
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns, TargetScale, describe, rmse, take_options
from tabnsm_bench.protocol import Prepared

_DEFAULTS = {"n_neighbors": 3, "n_derivative_neighbors": None, "scaling": "learned", "order": "1"}


class DNNR:
    """Differential nearest neighbours regression, with the learned scaling of its authors.

    Parameters
    ----------
    **given
        Options to change. `n_derivative_neighbors` is three per feature, as in the package, but
        never more than there are rows.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        self.library = importlib.import_module("dnnr")
        _use_exact_index(self.library.nn_index)
        self.options = take_options("DNNR", _DEFAULTS, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. It cannot stop halfway, so that no time limit is kept."""
        self.columns = Columns(data.category_sizes)
        self.scale = TargetScale.of(data.train.y)
        x = self.columns.one_hot(data.train.x).astype(np.float64)
        options = dict(self.options)
        wanted = options["n_derivative_neighbors"] or 3 * x.shape[1]
        # The learned scaling holds some of the rows back.
        options["n_derivative_neighbors"] = min(wanted, len(x) // 2)
        random.seed(seed)
        scaling = options["scaling"]
        if scaling == "learned":
            scaling = self.library.LearnedScaling(random=random.Random(seed))
        self.model = self.library.DNNR(**{**options, "scaling": scaling}, clip=True)
        self.model.fit(x, self.scale.apply(data.train.y))
        error = rmse(data.validation.y, self.predict(data.validation.x, None))
        return describe("dnnr", options, validation_rmse=error)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        predicted = self.model.predict(self.columns.one_hot(x).astype(np.float64))
        return self.scale.undo(np.asarray(predicted))


def _use_exact_index(indices: Any) -> None:
    """Let the package find exact neighbours by a tree, and never more of them than rows.

    Its own index, annoy, has no wheels and is used by the learned scaling whatever is asked for.
    """

    class ExactIndex(indices.KDTreeIndex):  # type: ignore[misc]
        def fit(self, x: NDArray[np.float64]) -> None:
            super().fit(x)
            self.n_rows = len(x)

        def query_knn(self, v: NDArray[np.float64], k: int) -> Any:
            return super().query_knn(v, min(k, self.n_rows))

    indices.AnnoyIndex = ExactIndex
