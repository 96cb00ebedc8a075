"""Ctrl-C, and the kill of a machine and of the head of a Ray cluster, in the middle of a fit."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm.container import read_container
from tabnsm.errors import TabNSMError
from tests.distributed.local_cluster import LocalCluster, descendants

pytestmark = pytest.mark.slow
N_EPOCHS = 15
FIT = """
import sys
from tabnsm import distributed
data, runs, epochs = sys.argv[1:]
model = distributed.fit(
    data, "y", num_workers=2, parallel="rows", storage_path=runs, preset="fast",
    max_epochs=int(epochs), patience=int(epochs), random_state=0,
)
assert [r.epoch for r in model.history_] == list(range(1, int(epochs) + 1))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A head without workers, and three machines, one of which may go."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    nodes = LocalCluster(n_cpus=0)
    try:
        for _ in range(3):
            nodes.add_node(n_cpus=1)
        yield nodes
    finally:
        nodes.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 4)), columns=["x0", "x1", "x2", "x3"])
    table["y"] = table.x0 * table.x1 + table.x2
    folder = tmp_path_factory.mktemp("data")
    for k in range(4):
        table[100 * k : 100 * k + 100].to_parquet(folder / f"{k}.parquet")
    return folder


@contextlib.contextmanager
def fit(cluster: LocalCluster, data: Path, runs: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", FIT, str(data), str(runs), str(N_EPOCHS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cluster.settings | {"RAY_ADDRESS": cluster.address},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stored_epoch(runs: Path) -> int:
    """The last epoch that is stored, or 0."""
    found = 0
    for path in runs.glob("*/network-1/checkpoint*/checkpoint.safetensors"):
        # A file that is being written or removed.
        with contextlib.suppress(TabNSMError, OSError, KeyError, RuntimeError):
            found = max(found, len(read_container(path)[1]["history"]["epochs"]))
    return found


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    give_up = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < give_up
        if process is not None and process.poll() is not None:
            raise AssertionError(process.communicate()[1][-3000:])
        time.sleep(0.05)


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors[-3000:]


def test_ctrl_c_ends_the_workers_and_keeps_the_epochs(
    cluster: LocalCluster, data: Path, tmp_path: Path
) -> None:
    with fit(cluster, data, tmp_path) as process:
        wait_for(lambda: stored_epoch(tmp_path) >= 1, process)
        assert cluster.worker_ids("RayTrainWorker")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert errors.strip().splitlines()[-1] == "KeyboardInterrupt"
    wait_for(lambda: not cluster.worker_ids("RayTrainWorker"))
    assert stored_epoch(tmp_path) >= 1


def test_a_machine_is_killed_and_training_goes_on(
    cluster: LocalCluster, data: Path, tmp_path: Path
) -> None:
    with fit(cluster, data, tmp_path) as process:
        wait_for(lambda: stored_epoch(tmp_path) >= 1, process)
        workers = set(cluster.worker_ids("RayTrainWorker"))
        number = next(k for k in (1, 2, 3) if workers & set(descendants(cluster.nodes[k].pid)))
        cluster.kill_node(number)
        finish(process)
    assert list(tmp_path.iterdir()) == []


def test_the_head_is_killed_and_the_same_call_goes_on(
    cluster: LocalCluster, data: Path, tmp_path: Path
) -> None:
    with fit(cluster, data, tmp_path) as process:
        wait_for(lambda: stored_epoch(tmp_path) >= 1, process)
        cluster.kill_node(0)
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 1
        assert "TabNSMError: Training on the cluster failed" in errors
        assert "the same call goes on from there" in errors
    cluster.close()
    before = stored_epoch(tmp_path)
    assert 1 <= before < N_EPOCHS
    again = LocalCluster(n_cpus=2)
    try:
        with fit(again, data, tmp_path) as process:
            # Later epochs alone: the first ones are not trained again.
            seen = set()
            while process.poll() is None:
                seen.add(stored_epoch(tmp_path))
                time.sleep(0.05)
            finish(process)
        assert min(seen - {0}) >= before
    finally:
        again.close()
    assert list(tmp_path.iterdir()) == []
