"""TabPFN-v2, from tabpfn, with weights that are on this machine already."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines.common import (
    Columns,
    describe,
    draw_rows,
    take_options,
    torch_threads,
)
from tabnsm_bench.protocol import Prepared

WEIGHTS = "TABNSM_TABPFN_WEIGHTS"
SOURCE = (
    "They are the file tabpfn-v2-regressor.ckpt of https://huggingface.co/Prior-Labs/TabPFN-v2-reg."
)
# What the weights were made for.
MAX_ROWS, MAX_FEATURES = 10_000, 500


def check_weights(path: str | None) -> None:
    """Raise `InvalidOptionError` if a file is not a checkpoint of TabPFN.

    Parameters
    ----------
    path : str or None
        The file.
    """
    import torch

    found = None
    with contextlib.suppress(OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError):
        found = torch.load(path or "", map_location="cpu", weights_only=True, mmap=True)
    if not (isinstance(found, dict) and {"state_dict", "config"} <= found.keys()):
        raise InvalidOptionError(
            f"{WEIGHTS} must name the weights of TabPFN-v2's regressor, got {path!r}, which is no "
            f"checkpoint of it. {SOURCE}"
        )


class TabPFN:
    """A pretrained transformer that takes the training rows as its context.

    Parameters
    ----------
    **given
        Options to change: `weights`, the file, and `n_estimators`, `max_rows`, `max_features`.
    """

    takes_frames = False

    def __init__(self, **given: Any) -> None:
        # It would look for newer weights and report its use otherwise.
        os.environ["TABPFN_DISABLE_TELEMETRY"] = "1"
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TABPFN_ALLOW_CPU_LARGE_DATASET"] = "1"
        self.library = importlib.import_module("tabpfn")
        defaults = {
            "weights": os.environ.get(WEIGHTS),
            "n_estimators": 8,
            "max_rows": MAX_ROWS,
            "max_features": MAX_FEATURES,
        }
        self.options = take_options("TabPFN-v2", defaults, given)
        check_weights(self.options["weights"])

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. Nothing is trained, so that validation rows choose nothing."""
        self.n_threads, notes = n_threads, []
        columns, n_rows = Columns(data.category_sizes), len(data.train.y)
        rows = draw_rows(n_rows, self.options["max_rows"], seed)
        if len(rows) < n_rows:
            notes.append(f"{len(rows):,} of {n_rows:,} training rows, drawn at random")
        n_features = data.train.x.shape[1]
        self.kept = draw_rows(n_features, self.options["max_features"], seed)
        if len(self.kept) < n_features:
            notes.append(f"{len(self.kept)} of {n_features} features, drawn at random")
        categories = set(columns.categories)
        self.model = self.library.TabPFNRegressor(
            model_path=self.options["weights"],
            n_estimators=self.options["n_estimators"],
            categorical_features_indices=[
                position for position, feature in enumerate(self.kept) if feature in categories
            ],
            device="cpu",
            random_state=seed,
            ignore_pretraining_limits=True,
            n_jobs=n_threads,
        )
        with torch_threads(n_threads):
            self.model.fit(data.train.x[rows][:, self.kept], data.train.y[rows])
        stated = {**self.options, "weights": os.path.basename(self.options["weights"])}
        return describe("tabpfn", stated, notes=notes)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads):
            return np.asarray(self.model.predict(x[:, self.kept]), dtype=np.float64)
