"""What the ablations on real tables share: some rows, the paper's split, a fit, its record."""

from __future__ import annotations

import json
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.metrics import regression_metrics

SPLIT = 42


def read_table(data_dir: Path, name: str, n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Some rows of a table, without the columns that its description calls leaks."""
    about = json.loads((data_dir / f"{name}.json").read_text())
    frame = pd.read_parquet(data_dir / about["file"]).sample(n_rows, random_state=SPLIT)
    X = frame.drop(columns=[about["target"], *about["drop"]]).reset_index(drop=True)
    return X, frame[about["target"]].to_numpy(dtype=np.float64)


def split_rows(X: pd.DataFrame, y: np.ndarray) -> tuple[Any, ...]:
    """Rows to train, to validate and to test on (72/8/20), each with its target."""
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, random_state=SPLIT)
    X_train, X_val, y_train, y_val = train_test_split(
        X_rest, y_rest, test_size=0.1, random_state=SPLIT
    )
    return X_train, y_train, X_val, y_val, X_test, y_test


def fit_and_score(model: TabNSMRegressor, rows: tuple[Any, ...]) -> dict[str, Any]:
    """Fit on the rows of `split_rows`; scores, settings and versions."""
    X_train, y_train, X_val, y_val, X_test, y_test = rows
    started = time.perf_counter()
    model.fit(X_train, y_train, X_val=X_val, y_val=y_val)
    return {
        "n_features": model.encoder_.n_features,
        "n_rows": {"train": len(X_train), "validation": len(X_val), "test": len(X_test)},
        "validation": regression_metrics(y_val, model.predict(X_val)),
        "test": regression_metrics(y_test, model.predict(X_test)),
        "epochs": len(model.history_),
        "best_epoch": model.history_.best_epoch,
        "fit_seconds": round(time.perf_counter() - started, 1),
        "config": model.options_.to_dict(),
        "versions": {name: version(name) for name in ("tabnsm", "torch", "numpy", "scikit-learn")}
        | {"python": platform.python_version(), "threads": torch.get_num_threads()},
    }


def format_scores(runs: list[dict[str, Any]]) -> str:
    """Mean and standard deviation over seeds of the RMSE."""
    scores = []
    for part in ("validation", "test"):
        values = [result[part]["rmse"] for result in runs]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        scores.append(f"{part} RMSE {statistics.mean(values):8.4f} +- {spread:.4f}")
    return f"{', '.join(scores)} ({len(runs)} seeds)"
