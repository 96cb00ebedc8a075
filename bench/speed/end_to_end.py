"""Seconds of training until an equal validation RMSE: TabNSM, CatBoost and LightGBM on the CPU.

    python bench/speed/end_to_end.py --data-dir ../shared/data --table cpu_small

The paper's protocol takes the time until a predefined validation loss, but does not say how that
level is set. Here, for TabNSM and each peer, it is the best that the weaker of both reaches.
All see the same encoded features and the same rows (72/8/20, random_state 42; the test rows are
not touched) and use the same threads; the trees stop early and have their defaults otherwise.
Encoding, which all share, is not in the times.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import figure, show
from sides import TABNSM, MissingPeerError, peer
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.tables import Table

SPLIT = 42
TREES, PATIENCE = 2000, 50

Curve = list[tuple[float, float]]
"""Seconds since the start of training and validation RMSE, after every epoch or tree."""

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Features and target of the training rows, then of the validation rows."""


def run(
    *,
    data_dir: Path,
    table: str = "cpu_small",
    time_limit: float = 110.0,
    n_rows: int | None = None,
) -> dict[str, Any]:
    """Curves of all methods on one table, and the times to the levels that both sides reach."""
    model, arrays, encode_seconds = fit_tabnsm(data_dir, table, time_limit, n_rows)
    curves = {TABNSM: [(epoch.seconds, epoch.validation_rmse) for epoch in model.history_]}
    missing = []
    for name, fit in TREE_METHODS.items():
        try:
            curves[name] = fit(arrays, time_limit)
        except MissingPeerError as error:
            missing.append(str(error))
    rows, figures = [], []
    for name in (name for name in curves if name != TABNSM):
        row = compare(curves[TABNSM], curves[name])
        rows.append({"table": table, "peer": name} | row)
        figures.append(
            figure(
                f"TabNSM's time to validation RMSE {row['level']:.3g} on {table}, times {name}'s",
                row["tabnsm_seconds"] / row["peer_seconds"],
            )
        )
    settings = {
        "table": table,
        "n_features": arrays[0].shape[1],
        "n_train": len(arrays[0]),
        "n_validation": len(arrays[2]),
        "time_limit": time_limit,
        "encode_seconds": encode_seconds,
    }
    return {
        "settings": settings,
        "rows": rows,
        "figures": figures,
        "missing": missing,
        "curves": {name: improvements(curve) for name, curve in curves.items()},
    }


def fit_tabnsm(
    data_dir: Path, table: str, time_limit: float, n_rows: int | None
) -> tuple[TabNSMRegressor, Arrays, float]:
    """One network of the default model, and the arrays that its encoder made."""
    import pandas as pd

    facts = json.loads((data_dir / f"{table}.json").read_text())
    frame = pd.read_parquet(data_dir / f"{table}.parquet").head(n_rows or facts["rows"])
    y = frame[facts["target"]].to_numpy(float)
    X = frame.drop(columns=[facts["target"], *facts["drop"]])
    X, _, y, _ = train_test_split(X, y, test_size=0.2, random_state=SPLIT)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.1, random_state=SPLIT)
    model = TabNSMRegressor(n_ensemble=1, random_state=0, time_limit=time_limit)
    started = time.perf_counter()
    model.fit(X, y, X_val=X_val, y_val=y_val)
    encode_seconds = time.perf_counter() - started - model.history_[-1].seconds
    return model, (encode(model, X), y, encode(model, X_val), y_val), encode_seconds


def encode(model: TabNSMRegressor, X: Any) -> np.ndarray:
    encoded = model.encoder_.transform(Table.from_native(X))
    return encoded.gather(torch.arange(encoded.n_rows)).numpy()


def fit_catboost(arrays: Arrays, time_limit: float) -> Curve:
    """CatBoost, timed from the making of its pools on."""
    catboost = peer("catboost", "catboost")
    X, y, X_val, y_val = arrays
    curve: Curve = []

    class Clock:
        def after_iteration(self, info: Any) -> bool:
            curve.append((time.perf_counter() - started, info.metrics["validation"]["RMSE"][-1]))
            return curve[-1][0] < time_limit

    started = time.perf_counter()
    catboost.CatBoostRegressor(
        iterations=TREES,
        early_stopping_rounds=PATIENCE,
        thread_count=torch.get_num_threads(),
        random_seed=0,
        verbose=False,
        allow_writing_files=False,
    ).fit(X, y, eval_set=(X_val, y_val), callbacks=[Clock()])
    return curve


def fit_lightgbm(arrays: Arrays, time_limit: float) -> Curve:
    """LightGBM, timed from the making of its data sets on."""
    lightgbm = peer("lightgbm", "lightgbm")
    X, y, X_val, y_val = arrays
    curve: Curve = []

    def clock(env: Any) -> None:
        curve.append((time.perf_counter() - started, env.evaluation_result_list[0][2]))
        if curve[-1][0] >= time_limit:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)

    started = time.perf_counter()
    train = lightgbm.Dataset(X, y)
    options = {"objective": "regression", "metric": "rmse", "seed": 0, "verbosity": -1}
    lightgbm.train(
        options | {"num_threads": torch.get_num_threads()},
        train,
        num_boost_round=TREES,
        valid_sets=[lightgbm.Dataset(X_val, y_val, reference=train)],
        callbacks=[clock, lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    return curve


TREE_METHODS: dict[str, Callable[[Arrays, float], Curve]] = {
    "CatBoost": fit_catboost,
    "LightGBM": fit_lightgbm,
}


def compare(ours: Curve, other: Curve) -> dict[str, float]:
    """Time of both to the level that both reach, and the best of each."""
    best, other_best = (min(score for _, score in curve) for curve in (ours, other))
    level = max(best, other_best)
    return {
        "level": level,
        "tabnsm_seconds": time_to(ours, level),
        "peer_seconds": time_to(other, level),
        "tabnsm_best": best,
        "peer_best": other_best,
        "tabnsm_seconds_in_all": ours[-1][0],
        "peer_seconds_in_all": other[-1][0],
    }


def time_to(curve: Curve, level: float) -> float:
    """Seconds until the validation RMSE is first at most `level`."""
    return next(seconds for seconds, score in curve if score <= level)


def improvements(curve: Curve) -> Curve:
    """The points of a curve that are better than all before, and its end."""
    best, kept = float("inf"), []
    for seconds, score in curve:
        if score < best:
            best = score
            kept.append((round(seconds, 3), score))
    return [*kept, (round(curve[-1][0], 3), best)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--table", default="cpu_small")
    arguments = parser.parse_args()
    show(run(data_dir=arguments.data_dir, table=arguments.table))
