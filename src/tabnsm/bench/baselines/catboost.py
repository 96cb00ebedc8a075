"""CatBoost, with its own defaults and early stopping on the validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.bench.baselines.common import Columns, Curve, describe, take_options
from tabnsm.bench.protocol import Prepared

ROUNDS, PATIENCE = 4000, 100
_OWN_CHOICE = ("learning_rate", "depth", "l2_leaf_reg", "random_strength", "bagging_temperature")


class CatBoost:
    """Gradient boosting on symmetric trees.

    Parameters
    ----------
    **given
        Options of ``CatBoostRegressor``, and `patience`, the rounds without a better validation
        RMSE after which it stops; None is the library's own choice.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        import catboost

        self.library = catboost
        defaults: dict[str, Any] = {"iterations": ROUNDS, "patience": PATIENCE}
        defaults |= dict.fromkeys(
            ("learning_rate", "depth", "l2_leaf_reg", "random_strength", "bagging_temperature"),
            None,
        )
        self.options = take_options("CatBoost", defaults, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        self.columns = Columns(data.category_sizes)
        curve = Curve()

        class Watch:
            def after_iteration(self, info: Any) -> bool:
                curve.add(info.metrics["validation"]["RMSE"][-1])
                return time_limit is None or curve.elapsed < time_limit

        chosen = {name: value for name, value in self.options.items() if value is not None}
        self.model = self.library.CatBoostRegressor(
            **{name: value for name, value in chosen.items() if name != "patience"},
            random_seed=seed,
            thread_count=n_threads,
            allow_writing_files=False,
            verbose=False,
            eval_metric="RMSE",
        )
        validation = self.library.Pool(
            self._table(data.validation.x), data.validation.y, cat_features=self.columns.categories
        )
        self.model.fit(
            self._table(data.train.x),
            data.train.y,
            cat_features=self.columns.categories,
            eval_set=validation,
            use_best_model=True,
            early_stopping_rounds=self.options["patience"],
            callbacks=[Watch()],
        )
        rate = self.model.get_all_params()["learning_rate"]
        return describe(
            "catboost",
            self.options | {"learning_rate": round(float(rate), 6)},
            best_iteration=int(self.model.get_best_iteration()),
            iterations=len(curve.seconds),
            history=curve.to_dict(),
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return np.asarray(self.model.predict(self._table(x)), dtype=np.float64)

    def _table(self, x: NDArray[np.float32]) -> Any:
        if not self.columns.categories:
            return x
        import pandas as pd

        table = pd.DataFrame(x)
        return table.astype(dict.fromkeys(self.columns.categories, np.int64))
