"""Results made by hand, as runs leave them, for statistics, tables and figures."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from tabnsm_bench.evidence import empty_code
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import empty_result
from tabnsm_bench.studies import STUDIES

PAPER = {"cpu_small": "CP", "nyc_air_quality": "AQ", "sarcos_test4449": "SA"}
BASE = {"cpu_small": 2.8, "nyc_air_quality": 5.1, "sarcos_test4449": 0.2}
ROWS = defaultdict(lambda: 50, cpu_small=80, nyc_air_quality=190, sarcos_test4449=44)
CODE = empty_code() | {"fingerprint": "f", "library": "l", "commit": "0" * 40}
NETWORKS = ("tabnsm-default", "tabnsm-paper", "tabnsm-fast", "mlp", "tabm", "realmlp")
METHODS = ("tabnsm-default", "tabnsm-paper", "ridge", "knn-5", "catboost", "lightgbm", "mlp")


def done(spec: RunSpec, rmse: float, **facts: Any) -> dict[str, Any]:
    """A finished run; `facts` replace whole entries of the result."""
    metrics = {"rmse": rmse, "mse": rmse**2, "mae": 0.7 * rmse, "r2": 0.9}
    steps = np.arange(1, 21)
    return empty_result(spec) | {
        "state": "done",
        "dataset": {
            "rows": 100 * ROWS[spec.dataset],
            "features": round(12 * spec.feature_fraction),
            "paper": PAPER.get(spec.dataset),
            "partial": "4449" in spec.dataset,
            "sha256": "a",
        },
        "split": {
            "n_train": 72 * ROWS[spec.dataset],
            "n_validation": 8 * ROWS[spec.dataset],
            "n_test": 20 * ROWS[spec.dataset],
            "test_index_sha256": f"{spec.dataset} {spec.split}",
        },
        "metrics": {"test": metrics, "validation": metrics},
        "fit_seconds": 10.0 * spec.sample_fraction,
        "predict_seconds": 0.1,
        "code": CODE,
        "peak_memory_mb": 300.0 + 500 * spec.feature_fraction,
        "settings": {
            "n_features": round(12 * spec.feature_fraction),
            **({"epochs": 20} if spec.method_key in NETWORKS else {}),
            "history": {
                "seconds": (0.5 * steps).tolist(),
                "validation_rmse": (rmse * (1 + np.exp(-steps / 4))).tolist(),
            },
        },
        **facts,
    }


def failed(spec: RunSpec, error: str, state: str = "failed") -> dict[str, Any]:
    """A run that came to nothing."""
    return empty_result(spec) | {"state": state, "error": error}


def run(spec: RunSpec, **facts: Any) -> dict[str, Any]:
    """A finished run whose score follows from its spec by chance, the same every time."""
    rng = np.random.default_rng(zlib.crc32(repr(spec).encode()))
    own = np.random.default_rng(zlib.crc32(spec.method.encode())).uniform(1, 1.3)
    smaller = (spec.feature_fraction * spec.sample_fraction) ** -0.3
    rmse = BASE.get(spec.dataset, 1.0) * own * smaller * (1 + 0.01 * rng.normal())
    seconds = float(10 ** (8 * (own - 1)))
    return done(spec, float(rmse), **{"fit_seconds": seconds} | facts)


def main_results(
    methods: Iterable[str] = METHODS, datasets: Iterable[str] = tuple(PAPER), n_seeds: int = 3
) -> list[dict[str, Any]]:
    """Every method on every dataset."""
    return [
        run(RunSpec(method, dataset, seed=seed))
        for dataset in datasets
        for method in methods
        for seed in range(n_seeds)
    ]


def study_results(
    name: str, datasets: Iterable[str] = tuple(PAPER), preset: str = "default"
) -> list[dict[str, Any]]:
    """All runs of a study."""
    study = STUDIES[name]
    return [run(spec) for dataset in datasets for spec in study.specs(dataset, study.seeds, preset)]
