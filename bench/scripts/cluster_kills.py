"""Kill a worker, a machine and the head of a Ray cluster in the middle of a fit, and time it.

Run from the root of the repository: python bench/scripts/cluster_kills.py [worker] [node] [head]
Writes bench/results/distributed/kills.json.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tabnsm.container import read_container  # noqa: E402
from tabnsm.errors import TabNSMError  # noqa: E402
from tests.distributed.local_cluster import LocalCluster  # noqa: E402

RESULT = ROOT / "bench" / "results" / "distributed" / "kills.json"
N_ROWS, N_EPOCHS = 20_000, 12
FIT = """
import sys, time
from tabnsm import distributed
data, runs, epochs = sys.argv[1:]
started = time.monotonic()
model = distributed.fit(
    data, "y", num_workers=2, parallel="rows", storage_path=runs, preset="fast",
    max_epochs=int(epochs), patience=int(epochs), random_state=0,
)
print(model.validation_rmse_, [r.epoch for r in model.history_] == list(range(1, int(epochs) + 1)))
"""


def stored_epoch(runs):
    """The last epoch that is stored, or 0."""
    found = 0
    for path in runs.glob("*/network-1/checkpoint*/checkpoint.safetensors"):
        with contextlib.suppress(TabNSMError, OSError, KeyError):  # being written or removed
            found = max(found, len(read_container(path)[1]["history"]["epochs"]))
    return found


def start(cluster, data, runs):
    settings = cluster.settings | {"RAY_ADDRESS": cluster.address}
    return subprocess.Popen(
        [sys.executable, "-c", FIT, str(data), str(runs), str(N_EPOCHS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | settings,
    )


def wait_for_epoch(runs, epoch, process):
    started = time.monotonic()
    while stored_epoch(runs) < epoch and process.poll() is None:
        assert time.monotonic() < started + 900
        time.sleep(0.05)
    return time.monotonic() - started


def new_cluster():
    cluster = LocalCluster()
    cluster.add_node()
    cluster.add_node()
    return cluster


def run(kind, data, folder):
    """One fit with one kill; what happened, in seconds."""
    runs = folder / kind
    cluster = new_cluster()
    found = {"kill": kind}
    try:
        process = start(cluster, data, runs)
        found["first_epoch_seconds"] = round(wait_for_epoch(runs, 1, process), 1)
        wait_for_epoch(runs, 2, process)
        workers = cluster.worker_ids("RayTrainWorker")
        before = stored_epoch(runs)
        if kind == "worker":
            os.kill(workers[0], signal.SIGKILL)
        elif kind == "node":
            cluster.kill_node(node_of(cluster, workers))
        elif kind == "head":
            cluster.kill_node(0)
        killed = time.monotonic()
        if kind == "head":
            output, errors = process.communicate(timeout=900)
            found["ends_seconds"] = round(time.monotonic() - killed, 1)
            found["exit"] = process.returncode
            found["last_line"] = (errors.strip().splitlines() or [""])[-1][:300]
            found["stored_epoch"] = before = stored_epoch(runs)
            cluster.close()
            cluster = new_cluster()
            killed = time.monotonic()
            process = start(cluster, data, runs)
        if kind != "none":
            wait_for_epoch(runs, before + 1, process)
            found["recovery_seconds"] = round(time.monotonic() - killed, 1)
        output, errors = process.communicate(timeout=900)
        assert process.returncode == 0, errors[-3000:]
        print(output, flush=True)
        rmse, is_whole = output.strip().splitlines()[-1].split()
        found |= {"validation_rmse": round(float(rmse), 5), "has_all_epochs": is_whole == "True"}
    finally:
        cluster.close()
    return found


def node_of(cluster, workers):
    """A node that is not the head and that runs a worker."""
    from tests.distributed.local_cluster import descendants

    for number in (1, 2):
        if set(workers) & set(descendants(cluster.nodes[number].pid)):
            return number
    return 1


def main():
    kinds = sys.argv[1:] or ["none", "worker", "node", "head"]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = pd.DataFrame(rng.normal(size=(N_ROWS, 20))).rename(columns=lambda k: f"x{k}")
        table["y"] = table.x0 * table.x1 + table.x2 + rng.normal(size=N_ROWS) / 2
        data = folder / "data"
        data.mkdir()
        for k in range(4):
            table[k * N_ROWS // 4 : (k + 1) * N_ROWS // 4].to_parquet(data / f"{k}.parquet")
        known = json.loads(RESULT.read_text()) if RESULT.exists() else {"runs": []}
        runs = {found["kill"]: found for found in known["runs"]}
        for kind in kinds:
            runs[kind] = run(kind, data, folder)
            print(runs[kind], flush=True)
            content = {"n_rows": N_ROWS, "n_columns": 20, "n_epochs": N_EPOCHS, "n_workers": 2}
            RESULT.write_text(json.dumps(content | {"runs": list(runs.values())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
