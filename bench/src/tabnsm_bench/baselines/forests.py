"""Random Forest and Extratrees, from scikit-learn, grown in steps so that a limit can be kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns, Curve, describe, rmse, take_options
from tabnsm_bench.protocol import Prepared

_STEP = 10
_DEFAULTS = {
    "n_estimators": 100,
    "max_features": 1.0,
    "min_samples_leaf": 1,
    "max_depth": None,
}


class Forest:
    """Trees that are averaged.

    Parameters
    ----------
    regressor : type
        Class of scikit-learn.
    options : dict
        Its options.
    """

    takes_frames = False

    def __init__(self, regressor: type[Any], options: dict[str, Any]) -> None:
        self.regressor = regressor
        self.options = options

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. The trees are those that a single fit would have grown."""
        self.columns = Columns(data.category_sizes)
        self.hot = self.columns.one_hot_for(len(data.train.y))
        x, wanted = self.hot(data.train.x), self.options["n_estimators"]
        curve, notes = Curve(), []
        self.model = self.regressor(
            **self.options | {"n_estimators": 0},
            random_state=seed,
            n_jobs=n_threads,
            warm_start=True,
        )
        while self.model.n_estimators < wanted:
            before = curve.elapsed
            self.model.n_estimators = min(wanted, self.model.n_estimators + _STEP)
            self.model.fit(x, data.train.y)
            curve.add(rmse(data.validation.y, self.predict(data.validation.x, None)))
            step = curve.elapsed - before
            if time_limit is not None and curve.elapsed + step > time_limit:
                break
        if self.model.n_estimators < wanted:
            notes.append(f"{self.model.n_estimators} of {wanted} trees within the time limit")
        return describe(
            "scikit-learn",
            self.options,
            n_trees=self.model.n_estimators,
            history=curve.to_dict(),
            notes=notes,
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return np.asarray(self.model.predict(self.hot(x)), dtype=np.float64)


def random_forest(**given: Any) -> Forest:
    """Bootstrapped trees, with scikit-learn's defaults."""
    from sklearn.ensemble import RandomForestRegressor

    return Forest(RandomForestRegressor, take_options("Random Forest", _DEFAULTS, given))


def extra_trees(**given: Any) -> Forest:
    """Trees with random thresholds, with scikit-learn's defaults."""
    from sklearn.ensemble import ExtraTreesRegressor

    return Forest(ExtraTreesRegressor, take_options("Extratrees", _DEFAULTS, given))
