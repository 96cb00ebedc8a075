"""GRANDE, from the package of the same name: an ensemble of trees trained by gradients."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import (
    MAX_EPOCHS,
    PATIENCE,
    Columns,
    TargetScale,
    describe,
    take_options,
)
from tabnsm_bench.protocol import Prepared

# The package's own defaults but for epochs and patience, which are those of all baselines.
_DEFAULTS = {
    "depth": 5,
    "n_estimators": 2048,
    "learning_rate_weights": 0.005,
    "learning_rate_index": 0.01,
    "learning_rate_values": 0.01,
    "learning_rate_leaf": 0.01,
    "dropout": 0.0,
    "selected_variables": 0.8,
    "batch_size": 64,
    "max_epochs": MAX_EPOCHS,
    "patience": PATIENCE,
}


class GRANDE:
    """Gradient-based decision trees, weighted row by row.

    Parameters
    ----------
    **given
        Options to change.
    """

    takes_frames = False
    is_stopped = False

    def __init__(self, **given: Any) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        self.options = take_options("GRANDE", _DEFAULTS, given)
        self.library = importlib.import_module("GRANDE.GRANDE")

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. At its time limit it ends with the epoch."""
        self._use_threads(n_threads)
        self.columns = Columns(data.category_sizes)
        # The package scales the target itself, in float32: large numbers would lose digits there.
        self.scale = TargetScale.of(data.train.y)
        options = dict(self.options)
        epochs, patience = options.pop("max_epochs"), options.pop("patience")
        self.model = self.library.GRANDE(
            params=options | {"loss": "mse", "focal_loss": False, "optimizer": "adam"},
            args={
                "objective": "regression",
                "cat_idx": self.columns.categories,
                "epochs": epochs,
                "early_stopping_epochs": patience,
                "random_seed": seed,
                "verbose": 0,
            },
        )
        timer = None
        if time_limit is not None:
            timer = threading.Timer(time_limit, self._stop)
            timer.daemon = True
            timer.start()
        self.model.fit(
            self._table(data.train.x),
            self.scale.apply(data.train.y),
            X_val=self._table(data.validation.x),
            y_val=self.scale.apply(data.validation.y),
        )
        if timer is not None:
            timer.cancel()
        losses = self.model.history.history["val_loss"]
        return describe(
            "GRANDE",
            self.options,
            epochs=len(losses),
            best_epoch=int(np.argmin(losses)) + 1,
            n_parameters=int(sum(np.prod(w.shape) for w in self._variables())),
            notes=["stopped by the time limit"] if self.is_stopped else [],
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        predicted = np.asarray(self.model.predict(self._table(x), batch_size=256))
        return self.scale.undo(predicted.reshape(len(x)))

    def _stop(self) -> None:
        self.is_stopped = True
        self.model.stop_training = True

    def _variables(self) -> list[Any]:
        names = ("estimator_weights", "split_values", "split_index_array", "leaf_classes_array")
        return [getattr(self.model, name) for name in names]

    def _table(self, x: NDArray[np.float32]) -> Any:
        import pandas as pd

        return pd.DataFrame(x.astype(np.float64))

    @staticmethod
    def _use_threads(n_threads: int) -> None:
        config = importlib.import_module("tensorflow").config.threading
        try:
            config.set_intra_op_parallelism_threads(n_threads)
            config.set_inter_op_parallelism_threads(n_threads)
        except RuntimeError:  # TensorFlow takes these once per process
            return
