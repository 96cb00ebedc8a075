"""XGBoost: its own defaults but for small steps; the validation rows choose the rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Curve, describe, take_options
from tabnsm_bench.protocol import Prepared

ROUNDS, PATIENCE = 4000, 100
# Where the validation rows choose the number of rounds, the library's larger step costs accuracy.
LEARNING_RATE = 0.05
_PARAMETERS = {
    "learning_rate": LEARNING_RATE,
    "max_depth": 6,
    "min_child_weight": 1.0,
    "subsample": 1.0,
    "colsample_bytree": 1.0,
    "reg_alpha": 0.0,
    "reg_lambda": 1.0,
    "gamma": 0.0,
}


class XGBoost:
    """Gradient boosting on histograms, level by level.

    Parameters
    ----------
    **given
        Options of ``xgboost.train``, and `patience`, the rounds without a better validation RMSE
        after which it stops.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        import xgboost

        self.library = xgboost
        defaults = {"n_estimators": ROUNDS, "patience": PATIENCE, **_PARAMETERS}
        self.options = take_options("XGBoost", defaults, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        curve = Curve()

        class Watch(self.library.callback.TrainingCallback):  # type: ignore[name-defined,misc]
            def after_iteration(self, model: Any, epoch: int, log: Any) -> bool:
                curve.add(log["validation"]["rmse"][-1])
                return time_limit is not None and curve.elapsed >= time_limit

        self.types = ["c" if size else "float" for size in data.category_sizes]
        self.n_threads = n_threads
        train = self._rows(data.train.x, data.train.y)
        patience = self.options["patience"]
        stop = self.library.callback.EarlyStopping(rounds=patience, save_best=True)
        fixed = {"objective": "reg:squarederror", "eval_metric": "rmse", "tree_method": "hist"}
        self.model = self.library.train(
            {name: self.options[name] for name in _PARAMETERS}
            | fixed
            | {"seed": seed, "nthread": n_threads, "verbosity": 0},
            train,
            num_boost_round=self.options["n_estimators"],
            evals=[(self._rows(data.validation.x, data.validation.y), "validation")],
            callbacks=[Watch(), stop],
            verbose_eval=False,
        )
        return describe(
            "xgboost",
            self.options,
            best_iteration=int(np.argmin(curve.validation_rmse)),
            iterations=len(curve.seconds),
            history=curve.to_dict(),
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return np.asarray(self.model.predict(self._rows(x)), dtype=np.float64)

    def _rows(self, x: NDArray[np.float32], y: NDArray[np.float64] | None = None) -> Any:
        return self.library.DMatrix(
            x, y, feature_types=self.types, enable_categorical=True, nthread=self.n_threads
        )
