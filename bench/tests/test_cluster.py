"""Runs on a Ray cluster of node processes on loopback, by the command line."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tabnsm_bench.store import load_results
from tests.distributed.local_cluster import LocalCluster

PROGRAM = "import sys; from tabnsm.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
def test_runs_of_a_cluster_end_in_this_folder(table_dir: Path, tmp_path: Path) -> None:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    results = tmp_path / "results"
    command = f"bench run -m ridge,knn-5 --datasets toy -d {table_dir} --results {results}"
    cluster = LocalCluster()
    command += f" --processes 2 --ray-address {cluster.address}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command.split()],
            env=os.environ | cluster.settings,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        cluster.close()
    assert done.returncode == 0, done.stderr
    found = {result["spec"]["method"]: result for result in load_results(results)}
    assert {result["state"] for result in found.values()} == {"done"}
    assert found["ridge"]["metrics"]["test"]["rmse"] < found["knn-5"]["metrics"]["test"]["rmse"]
