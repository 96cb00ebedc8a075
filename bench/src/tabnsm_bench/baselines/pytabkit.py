"""RealMLP and TabR, from pytabkit, with their authors' tuned defaults."""

from __future__ import annotations

import importlib
import tempfile
import warnings
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
    torch_threads,
)
from tabnsm_bench.protocol import Prepared


class PyTabKit:
    """A regressor of pytabkit, which chooses the epoch by the validation rows.

    Parameters
    ----------
    regressor : str
        Name of its class.
    defaults : dict
        Options that are set; those of the class that are not are its own affair.
    keeps_limit : bool
        Whether it can stop at a time limit by itself.
    given : dict
        Options to change.
    """

    takes_frames = False

    def __init__(
        self, regressor: str, defaults: dict[str, Any], keeps_limit: bool, given: dict[str, Any]
    ) -> None:
        library = importlib.import_module("pytabkit.models.sklearn.sklearn_interfaces")
        self.regressor = getattr(library, regressor)
        self.keeps_limit = keeps_limit
        own = self.regressor().get_params()
        decided = ("device", "random_state", "n_threads", "verbosity", "tmp_folder", "n_cv")
        known = {name: None for name in own if name not in decided}
        chosen = take_options(regressor, {**known, **defaults, "max_epochs": None}, given)
        max_epochs = chosen.pop("max_epochs")
        if max_epochs is not None:
            chosen["n_epochs"] = max_epochs
        self.options = {name: value for name, value in chosen.items() if value is not None}

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`."""
        columns = Columns(data.category_sizes)
        self.is_category = [size > 0 for size in data.category_sizes]
        self.scale, self.n_threads = TargetScale.of(data.train.y), n_threads
        limit = max(1, int(time_limit)) if time_limit is not None and self.keeps_limit else None
        with (
            torch_threads(n_threads),
            tempfile.TemporaryDirectory() as folder,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            self.model = self.regressor(
                **self.options,
                device="cpu",
                random_state=seed,
                n_threads=n_threads,
                verbosity=0,
                tmp_folder=folder,
            )
            self.model.fit(
                self._table(data.train.x),
                self.scale.apply(data.train.y),
                X_val=self._table(data.validation.x),
                y_val=self.scale.apply(data.validation.y),
                cat_indicator=self.is_category if columns.categories else None,
                time_to_fit_in_seconds=limit,
            )
        network = self._network()
        return describe(
            "pytabkit",
            self.options,
            n_parameters=None if network is None else sum(p.numel() for p in network.parameters()),
            chosen=self.model.fit_params_,
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = np.asarray(self.model.predict(self._table(x)))
        return self.scale.undo(predicted.reshape(len(x)))

    def _network(self) -> Any:
        fitted = self.model.cv_alg_interface_
        inner = getattr(fitted, "sub_split_interfaces", [fitted])[0]
        return getattr(inner, "model", None)

    def _table(self, x: NDArray[np.float32]) -> Any:
        import pandas as pd

        names = [f"x{position}" for position in range(x.shape[1])]
        table = pd.DataFrame(x, columns=names)
        kinds = dict(zip(names, self.is_category, strict=True))
        return table.astype({name: np.int64 for name, is_code in kinds.items() if is_code})


def realmlp(**given: Any) -> PyTabKit:
    """RealMLP-TD: 256 epochs on a schedule, of which the best is kept."""
    return PyTabKit("RealMLP_TD_Regressor", {"n_epochs": 256}, True, given)


def tabr(**given: Any) -> PyTabKit:
    """TabR-S-D: an MLP that looks up its nearest training rows."""
    defaults = {"n_epochs": MAX_EPOCHS, "patience": PATIENCE}
    return PyTabKit("TabR_S_D_Regressor", defaults, False, given)
