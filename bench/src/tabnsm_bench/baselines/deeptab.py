"""TabTransformer, SAINT, AutoInt, NODE, ModernNCA and TANGOS, from DeepTab."""

from __future__ import annotations

import importlib
import logging
import math
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.training.config import TrainingConfig
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

_TRAINING = {
    "max_epochs": MAX_EPOCHS,
    "patience": PATIENCE,
    "learning_rate": 1e-3,
    "weight_decay": 1e-5,
}
_N_BINS = 10
# Twelve weights per pair of numbers in a row: 13 million, 0.2 GB with their gradients and moments.
_MAX_ROW_WIDTH = 1024


class DeepTab:
    """A regressor of DeepTab on our arrays, with the shared batches and early stopping.

    Parameters
    ----------
    regressor : str
        "module:class" below ``deeptab.models``.
    wants_categories : bool
        Whether it has no use for a table of numbers; such a table gets each number, in ten
        quantile bins, as a category beside it.
    given : dict
        Options of the network (fields of its configuration) or of its training, to change.
    width : callable or None
        Width of a token for so many features, where `d_model` was not given.
    """

    takes_frames = False

    def __init__(
        self,
        regressor: str,
        wants_categories: bool,
        given: dict[str, Any],
        width: Callable[[int], int] | None = None,
    ) -> None:
        module, _, name = regressor.rpartition(":")
        self.regressor = getattr(importlib.import_module(f"deeptab.models{module}"), name)
        self.configs = importlib.import_module("deeptab.configs")
        self.lightning = importlib.import_module("lightning.pytorch.callbacks")
        self.wants_categories = wants_categories
        defaults = self.regressor._config_cls().get_params(deep=False)
        chosen = take_options(name, {**defaults, **_TRAINING}, given)
        self.training = {key: chosen[key] for key in _TRAINING}
        self.network = {key: chosen[key] for key in defaults}
        self.width = None if "d_model" in given else width

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        self.columns = Columns(data.category_sizes)
        self.scale, self.n_threads = TargetScale.of(data.train.y), n_threads
        self.edges, notes = None, []
        if self.wants_categories and not self.columns.category_sizes:
            inner = np.linspace(0, 1, _N_BINS + 1)[1:-1]
            self.edges = np.quantile(data.train.x, inner, axis=0)  # (n_bins - 1, D)
            notes.append(f"no categories, so each number is one, too, in {_N_BINS} quantile bins")
        if self.width is not None:
            d_model = self.width(len(self.columns.sizes))
            if d_model < self.network["d_model"]:
                default = self.network["d_model"]
                notes.append(f"tokens of {d_model} numbers, not {default}: row attention fits")
                self.network["d_model"] = d_model
        curve = Curve()
        rows_per_step = TrainingConfig().resolved_batch_size(len(data.train.y))
        self.model = self.regressor(
            model_config=self.regressor._config_cls(**self.network),
            preprocessing_config=self.configs.PreprocessingConfig(
                numerical_method="none",
                categorical_method="int",
                treat_all_integers_as_numerical=True,
                output_dim=1,
            ),
            random_state=seed,
        )
        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
        with (
            torch_threads(n_threads),
            tempfile.TemporaryDirectory() as folder,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            self.model.fit(
                self._table(data.train.x),
                self.scale.apply(data.train.y),
                X_val=self._table(data.validation.x),
                y_val=self.scale.apply(data.validation.y),
                max_epochs=self.training["max_epochs"],
                patience=self.training["patience"],
                lr=self.training["learning_rate"],
                weight_decay=self.training["weight_decay"],
                lr_patience=SCHEDULER_PATIENCE - 1,
                lr_factor=0.5,
                batch_size=rows_per_step,
                checkpoint_path=folder,
                callbacks=[self._watch(curve)],
                max_time=None if time_limit is None else {"seconds": max(1, int(time_limit))},
                gradient_clip_val=1.0,
                enable_progress_bar=False,
                accelerator="cpu",
                devices=1,
            )
        epochs = len(curve.seconds)
        if time_limit is not None and curve.elapsed >= time_limit:
            notes.append(f"stopped by the time limit in epoch {epochs}")
        return describe(
            "deeptab",
            {**{key: _plain(value) for key, value in self.network.items()}, **self.training},
            rows_per_step=rows_per_step,
            n_parameters=int(self.model.get_number_of_params()),
            epochs=epochs,
            best_epoch=int(np.argmin(curve.validation_rmse)) + 1 if epochs else None,
            history=curve.to_dict(),
            notes=notes,
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = np.asarray(self.model.predict(self._table(x)))
        return self.scale.undo(predicted.reshape(len(x)))

    def _watch(self, curve: Curve) -> Any:
        spread = self.scale.std

        class Watch(self.lightning.Callback):  # type: ignore[name-defined,misc]
            def on_validation_end(self, trainer: Any, module: Any) -> None:
                if not trainer.sanity_checking:
                    loss = float(trainer.callback_metrics["val_loss"])
                    curve.add(math.sqrt(loss) * spread if loss >= 0 else math.nan)

        return Watch()

    def _table(self, x: NDArray[np.float32]) -> Any:
        import pandas as pd

        numbers, codes = self.columns.split(x)
        table = {f"number {j}": numbers[:, j] for j in range(numbers.shape[1])}
        if self.edges is not None:
            codes = np.stack(
                [np.searchsorted(self.edges[:, j], x[:, j]) for j in range(x.shape[1])], axis=1
            )
        # Strings, because numbers would not be taken for categories.
        table |= {f"category {j}": codes[:, j].astype(str) for j in range(codes.shape[1])}
        return pd.DataFrame(table)


def _plain(value: Any) -> Any:
    """A JSON-able form of a configuration's value, which may be a torch module."""
    is_plain = isinstance(value, (bool, int, float, str, list, dict, type(None)))
    return value if is_plain else str(value)


def tab_transformer(**given: Any) -> DeepTab:
    """Attention over the categories, an MLP over them and the numbers."""
    return DeepTab(":TabTransformerRegressor", True, given)


def saint(**given: Any) -> DeepTab:
    """Attention over features and over rows."""
    return DeepTab(":SAINTRegressor", False, given, width=saint_width)


def saint_width(n_features: int) -> int:
    """Width of a token: the authors' 32, less where the attention over rows would not fit.

    It works on all tokens of a row side by side: its weights grow with the square of features times
    width. The authors shrink the tokens of wide tables, too.

    Examples
    --------
    >>> [saint_width(n) for n in (12, 82, 390, 5000)]
    [32, 8, 2, 2]
    """
    fits = [d for d in (32, 16, 8, 4) if (n_features + 1) * d <= _MAX_ROW_WIDTH]
    return max(fits, default=2)


def autoint(**given: Any) -> DeepTab:
    """Attention over features, layer by layer."""
    return DeepTab(":AutoIntRegressor", False, given)


def node(**given: Any) -> DeepTab:
    """Differentiable oblivious trees."""
    return DeepTab(":NODERegressor", False, given)


def modern_nca(**given: Any) -> DeepTab:
    """Soft nearest neighbours in a learned space (experimental in DeepTab)."""
    return DeepTab(".experimental:ModernNCARegressor", False, given)


def tangos(**given: Any) -> DeepTab:
    """An MLP whose neurons are made to look at different features (experimental in DeepTab)."""
    return DeepTab(".experimental:TangosRegressor", False, given)
