"""A step of two processes is the step of one on the same rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.distributed.gradient_step import gradients


@pytest.mark.slow
def test_two_processes_have_the_gradient_of_one(tmp_path: Path) -> None:
    """GridLoss has the range of the whole batch, whatever part of it a process has."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    done = subprocess.run(
        [*command, "-m", "tests.distributed.gradient_step", str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    for name, n_targets in {"uneven": 1, "empty": 1, "several": 2}.items():
        found = torch.load(tmp_path / f"{name}.pt")
        wanted = gradients(n_targets, [list(range(54))])
        assert found.keys() == wanted.keys()
        largest = max(float(gradient.abs().max()) for gradient in wanted.values())
        for key, gradient in wanted.items():
            assert torch.allclose(found[key], gradient, rtol=1e-5, atol=1e-5 * largest), key
