"""Time of a prediction for one row: the module, and the fitted estimator on a DataFrame.

    python bench/speed/latency.py

Numbers only, no text; the median of many calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from measure import figure, in_turns, show

from tabnsm import TabNSMRegressor

GOALS, GOAL_FEATURES = {"module": 5.0, "predict(DataFrame)": 20.0}, 400


def run(*, n_features: int = 400, n_rows: int = 256, seconds: float = 10.0) -> dict[str, Any]:
    """Milliseconds of one row through the module and through ``predict``."""
    values = np.random.default_rng(0).normal(size=(n_rows, n_features))
    frame = pd.DataFrame(values, columns=[f"column {i}" for i in range(n_features)])
    estimator = TabNSMRegressor(n_ensemble=1, max_epochs=1, random_state=0).fit(
        frame, values.sum(1)
    )
    model, one = estimator.model_.eval(), frame.iloc[:1]
    x = torch.randn(1, model.n_features)

    @torch.inference_mode()
    def module() -> torch.Tensor:
        return model(x)

    runs = {"module": module, "predict(DataFrame)": lambda: estimator.predict(one)}
    for call in runs.values():
        call()
    times = in_turns(runs, seconds=seconds)
    rows = [{"call": name, "median_ms": 1e3 * time} for name, time in times.items()]
    figures = [
        figure(
            f"one row, {name}, D = {model.n_features}, median",
            1e3 * time,
            "ms",
            at_most=GOALS[name] if model.n_features == GOAL_FEATURES else None,
        )
        for name, time in times.items()
    ]
    return {"settings": {"n_features": n_features}, "rows": rows, "figures": figures, "missing": []}


if __name__ == "__main__":
    show(run())
