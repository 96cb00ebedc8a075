"""CatBoost, with its own defaults and early stopping on the validation rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import Columns, Curve, describe, take_options
from tabnsm_bench.protocol import Prepared

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
        defaults |= dict.fromkeys(_OWN_CHOICE, None)
        self.options = take_options("CatBoost", defaults, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        self.columns = Columns(data.category_sizes)
        chosen = {name: value for name, value in self.options.items() if value is not None}
        validation = self.library.Pool(
            self._table(data.validation.x), data.validation.y, cat_features=self.columns.categories
        )
        with tempfile.TemporaryDirectory(prefix="catboost") as folder:
            self.model = self.library.CatBoostRegressor(
                **{name: value for name, value in chosen.items() if name != "patience"},
                random_seed=seed,
                thread_count=n_threads,
                train_dir=folder,
                verbose=False,
                eval_metric="RMSE",
            )
            started = Curve()
            self.model.fit(
                self._table(data.train.x),
                data.train.y,
                cat_features=self.columns.categories,
                eval_set=validation,
                use_best_model=True,
                early_stopping_rounds=self.options["patience"],
                # It copies all earlier scores at each call, so that it is not there for nothing.
                callbacks=None if time_limit is None else [_StopAfter(started, time_limit)],
            )
            seconds = _seconds_of_rounds(Path(folder))
        errors = self.model.get_evals_result()["validation"]["RMSE"]
        curve = Curve([float(e) for e in errors[: len(seconds)]], seconds[: len(errors)])
        rate = self.model.get_all_params()["learning_rate"]
        return describe(
            "catboost",
            self.options | {"learning_rate": round(float(rate), 6)},
            best_iteration=int(self.model.get_best_iteration()),
            iterations=len(errors),
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


class _StopAfter:
    """Ends the fit when the seconds are over."""

    def __init__(self, curve: Curve, seconds: float) -> None:
        self.curve = curve
        self.seconds = seconds

    def after_iteration(self, _info: Any) -> bool:
        return self.curve.elapsed < self.seconds


def _seconds_of_rounds(folder: Path) -> list[float]:
    """Seconds from the start to the end of each round, from what the library wrote."""
    lines = (folder / "time_left.tsv").read_text(encoding="utf-8").splitlines()
    passed = lines[0].split("\t").index("Passed")
    return [float(line.split("\t")[passed]) / 1000 for line in lines[1:]]
