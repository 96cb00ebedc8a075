"""Write the model file that later versions must read; run once per format version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tabnsm import TabNSMRegressor
from tabnsm.model_file import FORMAT_VERSION

rng = np.random.default_rng(0)
n_rows = 5 * 365
frame = pd.DataFrame(
    {
        "a": rng.normal(size=n_rows).round(3),
        "b": rng.choice(["x", "y", "z"], n_rows),
        "when": pd.date_range("2020-01-01", periods=n_rows),
    }
)
frame.loc[3, "a"] = np.nan
holiday = frame["when"].dt.strftime("%m-%d") == "01-01"
target = frame["a"].fillna(0) + (frame["b"] == "x") - 9 * holiday
model = TabNSMRegressor(max_epochs=3, d_token=8, head_width=8, random_state=0).fit(frame, target)

path = Path(__file__).parents[1] / f"tests/fixtures/model-format-{FORMAT_VERSION}.safetensors"
model.save(path)
rows = frame.head(8).assign(when=frame["when"].dt.strftime("%Y-%m-%d").head(8))
rows = rows.astype(object).where(rows.notna(), None)
levels = [0.2, 0.5, 0.8]
expected = {
    "rows": rows.to_dict("list"),
    "predictions": model.predict(frame.head(8)).tolist(),
    "levels": levels,
    "quantiles": model.predict(frame.head(8), output_type="quantiles", quantiles=levels).tolist(),
}
path.with_suffix(".json").write_text(json.dumps(expected, indent=1) + "\n")
