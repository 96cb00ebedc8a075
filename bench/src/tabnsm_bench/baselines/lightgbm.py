"""LightGBM: its own defaults but for small steps; the validation rows choose the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns, Curve, describe, take_options
from tabnsm_bench.protocol import Prepared

ROUNDS, PATIENCE = 4000, 100
# Where the validation rows choose the number of rounds, the library's larger step costs accuracy.
LEARNING_RATE = 0.05
_PARAMETERS = {
    "learning_rate": LEARNING_RATE,
    "num_leaves": 31,
    "min_child_samples": 20,
    "max_depth": -1,
    "subsample": 1.0,
    "subsample_freq": 1,
    "colsample_bytree": 1.0,
    "reg_alpha": 0.0,
    "reg_lambda": 0.0,
}


class LightGBM:
    """Gradient boosting on histograms, leaf by leaf.

    Parameters
    ----------
    **given
        Options of ``LGBMRegressor``, and `patience`, the rounds without a better validation RMSE
        after which it stops.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        import lightgbm

        self.library = lightgbm
        defaults = {"n_estimators": ROUNDS, "patience": PATIENCE, **_PARAMETERS}
        self.options = take_options("LightGBM", defaults, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        curve = Curve()

        def watch(state: Any) -> None:
            curve.add(state.evaluation_result_list[0][2])
            if time_limit is not None and curve.elapsed >= time_limit:
                best = int(np.argmin(curve.validation_rmse))
                raise self.library.callback.EarlyStopException(best, state.evaluation_result_list)

        categories = Columns(data.category_sizes).categories
        fixed = {"objective": "regression", "metric": "rmse", "verbosity": -1}
        fixed |= {"seed": seed, "num_threads": n_threads, "deterministic": True}
        rows = self.library.Dataset(
            data.train.x,
            data.train.y,
            categorical_feature=categories,
            params={"verbosity": -1, "num_threads": n_threads},
        )
        self.model = self.library.train(
            {name: self.options[name] for name in _PARAMETERS} | fixed,
            rows,
            num_boost_round=self.options["n_estimators"],
            valid_sets=[rows.create_valid(data.validation.x, data.validation.y)],
            callbacks=[
                watch,
                self.library.early_stopping(self.options["patience"], verbose=False),
            ],
        )
        return describe(
            "lightgbm",
            self.options,
            best_iteration=int(self.model.best_iteration),
            iterations=len(curve.seconds),
            history=curve.to_dict(),
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return np.asarray(self.model.predict(x), dtype=np.float64)
