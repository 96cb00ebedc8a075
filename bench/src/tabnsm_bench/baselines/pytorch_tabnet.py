"""TabNet, from pytorch-tabnet, with the shared batches and early stopping."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.training.config import TrainingConfig
from tabnsm.training.early_stopping import ValidationMonitor
from tabnsm_bench.baselines.common import (
    MAX_EPOCHS,
    PATIENCE,
    SCHEDULER_PATIENCE,
    Columns,
    Curve,
    TargetScale,
    describe,
    take_options,
    torch_threads,
)
from tabnsm_bench.protocol import Prepared

_NETWORK = {"n_d": 8, "n_a": 8, "n_steps": 3, "gamma": 1.3, "lambda_sparse": 1e-3}
_TRAINING = {"max_epochs": MAX_EPOCHS, "patience": PATIENCE, "learning_rate": 2e-2}
_GHOST_BATCH, _EMBEDDING = 128, 4


class TabNet:
    """Sequential attention over features, with the package's own defaults.

    Parameters
    ----------
    **given
        Options to change.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        self.library = importlib.import_module("pytorch_tabnet.tab_model")
        self.callbacks = importlib.import_module("pytorch_tabnet.callbacks")
        self.options = take_options("TabNet", {**_NETWORK, **_TRAINING}, given)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        columns = Columns(data.category_sizes)
        self.scale, self.n_threads = TargetScale.of(data.train.y), n_threads
        curve, spread, rate = Curve(), self.scale.std, self.options["learning_rate"]
        monitor = ValidationMonitor(self.options["patience"], SCHEDULER_PATIENCE)

        class Watch(self.callbacks.Callback):  # type: ignore[name-defined,misc]
            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                curve.add(logs["validation_rmse"] * spread)
                monitor.update(logs["validation_rmse"])
                # The package's own schedulers are not told the validation RMSE.
                for group in self.trainer._optimizer.param_groups:
                    group["lr"] = rate * monitor.learning_rate_factor
                per_epoch = curve.elapsed / len(curve.seconds)
                if time_limit is not None and curve.elapsed + per_epoch > time_limit:
                    self.trainer._stop_training = True

        self.model = self.library.TabNetRegressor(
            **{name: self.options[name] for name in _NETWORK},
            cat_idxs=columns.categories,
            cat_dims=columns.category_sizes,
            cat_emb_dim=_EMBEDDING,
            seed=seed,
            verbose=0,
            device_name="cpu",
            optimizer_params={"lr": rate},
        )
        rows_per_step = TrainingConfig().resolved_batch_size(len(data.train.y))
        with torch_threads(n_threads):
            self.model.fit(
                data.train.x,
                self.scale.apply(data.train.y)[:, None],
                eval_set=[(data.validation.x, self.scale.apply(data.validation.y)[:, None])],
                eval_name=["validation"],
                eval_metric=["rmse"],
                max_epochs=self.options["max_epochs"],
                patience=self.options["patience"],
                batch_size=rows_per_step,
                virtual_batch_size=min(_GHOST_BATCH, rows_per_step),
                drop_last=len(data.train.y) % rows_per_step == 1,  # one row has no spread
                callbacks=[Watch()],
            )
        epochs = len(curve.seconds)
        stopped = time_limit is not None and curve.elapsed > time_limit * epochs / (epochs + 1)
        return describe(
            "pytorch-tabnet",
            self.options,
            rows_per_step=rows_per_step,
            n_parameters=sum(p.numel() for p in self.model.network.parameters()),
            epochs=epochs,
            best_epoch=int(self.model.best_epoch) + 1,
            history=curve.to_dict(),
            notes=[f"stopped by the time limit in epoch {epochs}"] if stopped else [],
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads):
            return self.scale.undo(self.model.predict(x)[:, 0])
