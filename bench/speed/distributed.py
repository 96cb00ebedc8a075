"""Time of an epoch with 1, 2 and 4 processes, and what Ray adds to a fit of 20,000 rows.

    python bench/speed/distributed.py

Writes bench/results/distributed/epochs.json; wants an idle machine for about 4 minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

RESULT = Path(__file__).parents[1] / "results" / "distributed" / "epochs.json"
N_ROWS, N_COLUMNS, N_EPOCHS = 20_000, 50, 3
BATCHES = (256, 2048)


def make_table():
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N_ROWS, N_COLUMNS)))
    table = table.rename(columns=lambda k: f"x{k}")
    table["y"] = table.x0 * table.x1 + table.x2 + rng.normal(size=N_ROWS) / 2
    return table


def options(batch_size):
    common = {"preset": "fast", "max_epochs": N_EPOCHS, "patience": N_EPOCHS, "random_state": 0}
    return common | {"batch_size": batch_size, "max_boost": 1.0}


def epoch_seconds(model):
    """Median time of an epoch but the first, validation included."""
    return float(np.median(np.diff([record.seconds for record in model.history_])))


def worker(path, out):
    """Under torchrun: one fit for each size of batches."""
    import pandas as pd

    from tabnsm import TabNSMRegressor
    from tabnsm.distributed import process_group

    table = pd.read_parquet(path)
    found = {}
    with process_group():
        for batch_size in BATCHES:
            model = TabNSMRegressor(**options(batch_size))
            model.fit(table.drop(columns="y"), table["y"])
            n_weights = sum(p.numel() for p in model.model_.parameters())
            found[batch_size] = [epoch_seconds(model), model.validation_rmse_, n_weights]
    if os.environ["RANK"] == "0":
        Path(out).write_text(json.dumps(found))


def measure_processes(path, folder):
    rows = []
    for n_processes in (1, 2, 4):
        out = folder / f"{n_processes}.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={n_processes}", __file__, "worker", str(path), str(out)]
        settings = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        subprocess.run(command, check=True, env=os.environ | settings)
        for batch_size, (seconds, rmse, n_weights) in json.loads(out.read_text()).items():
            row = {"n_processes": n_processes, "batch_size": int(batch_size)}
            row |= {"epoch_seconds": round(seconds, 4), "validation_rmse": round(rmse, 5)}
            rows.append(row | {"all_reduce_bytes": 4 * n_weights})
            print(rows[-1], flush=True)
    return rows


def seconds_of(call):
    started = time.perf_counter()
    call()
    return round(time.perf_counter() - started, 2)


def measure_ray(path):
    """Seconds of a fit without Ray, of the start of a cluster, and of the same fits on it.

    Twice, since workers that are started for the first fit are there for the second.
    """
    import pandas as pd

    from tabnsm import TabNSMRegressor, distributed
    from tabnsm.distributed.cluster import cluster

    chosen, table = options(256), pd.read_parquet(path)
    X, y = table.drop(columns="y"), table["y"]
    TabNSMRegressor(**chosen | {"max_epochs": 1}).fit(X, y)  # imports
    found = {"local_seconds": seconds_of(lambda: TabNSMRegressor(**chosen).fit(X, y))}
    found["local_files_seconds"] = seconds_of(lambda: TabNSMRegressor(**chosen).fit(path, "y"))
    calls = {"networks": (table, "networks"), "rows": (table, "rows"), "files": (path, "rows")}
    started = time.perf_counter()
    with cluster(None, 1, 1, 0):
        found["start_seconds"] = round(time.perf_counter() - started, 2)
        for name, (data, parallel) in calls.items():
            how = {"num_workers": 1, "parallel": parallel} | chosen
            found[f"ray_{name}_seconds"] = [
                seconds_of(lambda d=data, h=how: distributed.fit(d, "y", **h)) for _ in range(2)
            ]
    print(found, flush=True)
    return found


def main():
    table = make_table()
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "table.parquet"
        table.to_parquet(path)
        found = {"n_rows": N_ROWS, "n_columns": N_COLUMNS, "preset": "fast"}
        found["n_cores"] = len(os.sched_getaffinity(0))
        found["load_before"] = round(os.getloadavg()[0], 1)
        found["epochs"] = measure_processes(path, Path(name))
        found["ray"] = measure_ray(path)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    else:
        main()
