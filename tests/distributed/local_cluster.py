"""A real Ray cluster on loopback: every node is a group of processes with an address of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OBJECT_STORE = 100 * 2**20
SECONDS_TO_START = 120


class LocalCluster:
    """Starts a head and further nodes; `close` ends all of their processes."""

    def __init__(self, n_cpus: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
            self.address = f"127.0.0.2:{probe.getsockname()[1]}"
        # A secret of this cluster's own: Ray would else take one that a user has, or none.
        self.settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.settings |= {"RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
        # A machine that is gone is found out in seconds rather than half a minute.
        self.settings |= {"RAY_health_check_period_ms": "1000"}
        self.settings |= {"RAY_health_check_failure_threshold": "5"}
        self.nodes: list[subprocess.Popen[bytes]] = []
        port = self.address.split(":")[1]
        self._start(n_cpus, "--head", f"--port={port}", "--temp-dir", self.folder)

    def add_node(self, n_cpus: int = 2) -> None:
        """A machine more, as far as Ray can tell."""
        self._start(n_cpus, f"--address={self.address}")

    def kill_node(self, number: int) -> None:
        """Kill all processes of a node at once, as a power cut does; 0 is the head."""
        for process in [*descendants(self.nodes[number].pid), self.nodes[number].pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.nodes[number].wait()

    def close(self) -> None:
        for number in range(len(self.nodes)):
            self.kill_node(number)
        shutil.rmtree(self.folder, ignore_errors=True)

    def worker_ids(self, name: str) -> list[int]:
        """Processes of this cluster's workers of some name, such as RayTrainWorker."""
        found = []
        for node in self.nodes:
            for number in descendants(node.pid):
                with contextlib.suppress(OSError):
                    if f"ray::{name}" in Path(f"/proc/{number}/cmdline").read_text():
                        found.append(number)
        return found

    def _start(self, n_cpus: int, *arguments: object) -> None:
        number = len(self.nodes) + 1  # 127.0.0.1 itself Ray takes for the address of the machine
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
        command += [str(argument) for argument in arguments]
        command += [f"--node-ip-address=127.0.0.{number + 1}", f"--num-cpus={n_cpus}"]
        command += [f"--object-store-memory={OBJECT_STORE}", "--disable-usage-stats"]
        if number == 1:
            command += ["--include-dashboard=false"]
        log = self.folder / f"node-{number}.log"
        with log.open("wb") as output:
            node = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | self.settings,
            )
        self.nodes.append(node)
        give_up = time.monotonic() + SECONDS_TO_START
        while "Ray runtime started" not in log.read_text():
            assert node.poll() is None, log.read_text()
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.2)


def descendants(process: int) -> list[int]:
    """Processes that a process has started, and those that these have."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found, front = [], {process}
    while front:
        front = {child for child, parent in parents.items() if parent in front}
        found += front
    return found
