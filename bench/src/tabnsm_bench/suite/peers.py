"""Peers of the suite that are not among the paper's baselines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns, describe
from tabnsm_bench.protocol import Prepared

_MAX_CATEGORIES = 255
HIST_GRADIENT_BOOSTING = "tabnsm_bench.suite.peers:HistGradientBoosting"


class HistGradientBoosting:
    """scikit-learn's boosting with its defaults, stopped early on the validation rows."""

    takes_frames = False
    options: dict[str, Any] = {"max_iter": 1000, "n_iter_no_change": 20}  # noqa: RUF012

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        sizes = data.category_sizes
        few = [k for k in Columns(sizes).categories if sizes[k] <= _MAX_CATEGORIES]
        self.model = HistGradientBoostingRegressor(
            early_stopping=True,
            categorical_features=few or None,
            random_state=seed,
            **self.options,
        )
        train, validation = data.train, data.validation
        self.model.fit(train.x, train.y, X_val=validation.x, y_val=validation.y)
        return describe("scikit-learn", self.options, iterations=int(self.model.n_iter_))

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return np.asarray(self.model.predict(x), dtype=np.float64)
