"""The methods that the study compares: TabNSM's own quantiles, and CatBoost's with MAPIE."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from tabnsm_bench.intervals.scores import LEVELS, QUANTILES, interval_ends
from tabnsm_bench.intervals.tables import split_table

Quantiles = dict[float, NDArray[np.float64]]
TABNSM_OPTIONS: dict[str, Any] = {"preset": "fast", "n_ensemble": 2}
CATBOOST_OPTIONS: dict[str, Any] = {
    "iterations": 4000,
    "learning_rate": 0.05,
    "early_stopping_rounds": 100,
}


def tabnsm_quantiles(
    name: str, split: int, shared: Path, checkpoints: Path | None = None
) -> tuple[NDArray[np.float64], Quantiles, dict[str, Any]]:
    """TabNSM: true values and quantiles of the test rows, and facts of the fit.

    Parameters
    ----------
    name : str
    split : int
    shared : Path
        As in `split_table`.
    checkpoints : Path or None
        Folder for the state of fits that are not finished.
    """
    from tabnsm import TabNSMRegressor

    X, y, X_test, y_test = split_table(name, split, shared)
    folder = None if checkpoints is None else checkpoints / f"{name}-{split}"
    model = TabNSMRegressor(random_state=split, n_jobs=1, checkpoint_dir=folder, **TABNSM_OPTIONS)
    started = time.process_time()
    model.fit(X, y, resume=folder is not None)
    seconds = time.process_time() - started
    found = model.predict(X_test, output_type="quantiles", quantiles=list(QUANTILES))
    error = y_test - model.predict(X_test)
    facts = {
        "options": TABNSM_OPTIONS,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "validation_rmse": model.validation_rmse_,
        "cpu_seconds": round(seconds, 1),
    }
    return y_test, dict(zip(QUANTILES, found.T, strict=True)), facts


def catboost_quantiles(
    name: str, split: int, shared: Path, _checkpoints: Path | None = None
) -> tuple[NDArray[np.float64], Quantiles, dict[str, Any]]:
    """CatBoost's quantiles, conformalised by MAPIE: as `tabnsm_quantiles`.

    On the encoded features of TabNSM's default; the rows that TabNSM validates on stop the
    boosting and are those that MAPIE conformalises by.
    """
    from catboost import CatBoostRegressor
    from mapie.regression import ConformalizedQuantileRegressor

    from tabnsm.columns import EncodedTable
    from tabnsm.options import resolve_options
    from tabnsm.tables import Table
    from tabnsm.training.prepare import FitRows

    X, y, X_test, y_test = split_table(name, split, shared)
    rows = FitRows.collect(X, y, random_state=split)
    encoder, data = rows.encode(resolve_options({"preset": "default"}).encoder)
    categories = [k for k, size in enumerate(encoder.category_sizes) if size]

    def frame(encoded: EncodedTable) -> Any:
        import pandas as pd
        import torch

        values = pd.DataFrame(encoded.gather(torch.arange(encoded.n_rows)).numpy())
        return values.astype(dict.fromkeys(categories, np.int64))

    held_out, truth = frame(data.validation), data.validation_target[:, 0]
    tests = frame(encoder.transform(Table.from_native(X_test)))
    started = time.process_time()
    model = CatBoostRegressor(
        loss_function="MultiQuantile:alpha=" + ",".join(map(str, QUANTILES)),
        random_seed=split,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **CATBOOST_OPTIONS,
    )
    train = frame(data.train), data.train_target[:, 0]
    model.fit(*train, cat_features=categories, eval_set=(held_out, truth), use_best_model=True)
    seconds = time.process_time() - started
    found: Quantiles = {}
    for level in LEVELS:
        low, high = interval_ends(level)
        parts = [_OneQuantile(model, QUANTILES.index(end)) for end in (low, high, 0.5)]
        conformal = ConformalizedQuantileRegressor(parts, confidence_level=level, prefit=True)
        conformal.conformalize(held_out, truth)
        points, bounds = conformal.predict_interval(tests)
        found |= {0.5: points, low: bounds[:, 0, 0], high: bounds[:, 1, 0]}
    facts = {
        "options": {"loss_function": "MultiQuantile", **CATBOOST_OPTIONS},
        "rounds": int(model.tree_count_),
        "cpu_seconds": round(seconds, 1),
    }
    return y_test, found, facts


class _OneQuantile(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """One of a fitted model's quantiles, as MAPIE takes it."""

    def __init__(self, model: Any, place: int) -> None:
        self.model = model
        self.place = place
        self.fitted_ = True  # what MAPIE looks for

    def fit(self, X: Any, y: Any) -> _OneQuantile:
        """Nothing is left to fit."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The quantile of each row."""
        return np.asarray(self.model.predict(X)[:, self.place], dtype=np.float64)


METHODS: dict[str, Callable[..., tuple[NDArray[np.float64], Quantiles, dict[str, Any]]]] = {
    "tabnsm": tabnsm_quantiles,
    "catboost-mapie": catboost_quantiles,
}
