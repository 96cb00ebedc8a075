"""Results written by hand, in the form that runs leave them."""

from __future__ import annotations

from typing import Any

from bench.tests.made_results import CODE
from tabnsm_bench.protocol import RunSpec


def done(spec: RunSpec, rmse: float, validation_rmse: float = 1.0, **facts: Any) -> dict[str, Any]:
    """A finished result."""
    return {
        "format": 1,
        "spec": spec.to_dict(),
        "dataset": {"rows": 500, "features": 12},
        "split": {"n_train": 360, "n_validation": 40, "n_test": 100, "test_index_sha256": "0"},
        "metrics": {
            "test": {"rmse": rmse, "mse": rmse**2, "mae": rmse / 2, "r2": 0.5},
            "validation": {"rmse": validation_rmse, "mse": validation_rmse**2, "r2": 0.75},
        },
        "fit_seconds": 2.0,
        "predict_seconds": 0.1,
        "peak_memory_mb": 300.0,
        "memory_before_fit_mb": 100.0,
        "settings": {},
        "code": CODE,
        "state": "done",
        "error": None,
        **facts,
    }


def failed(spec: RunSpec, error: str) -> dict[str, Any]:
    """A result that came to nothing."""
    return {"format": 1, "spec": spec.to_dict(), "state": "failed", "error": error}
