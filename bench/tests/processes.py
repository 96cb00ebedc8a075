"""Calls of the runner in processes of their own, and what they left behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.supervise import Ending, Watch

SHARE = """
import sys
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.run import run_many
method, seeds, data, results = sys.argv[1:]
run_many([RunSpec(method, "toy", seed=int(s)) for s in seeds.split(",")], data, results)
"""
PATIENCE_TICKS = 6000


class Log:
    """A display that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, watch: Watch) -> None:
        pass

    def ended(self, watch: Watch, ending: Ending) -> None:
        self.lines.append(f"{watch.spec.method} {watch.spec.seed} {ending.state}")

    def skipped(self, spec: RunSpec, reason: str) -> None:
        self.lines.append(f"{spec.method} {spec.seed} {reason}")


def start(method: str, seeds: str, data: Path, results: Path) -> subprocess.Popen[bytes]:
    """A call of `run_many` in a separate process."""
    arguments = [method, seeds, str(data), str(results)]
    return subprocess.Popen([sys.executable, "-c", SHARE, *arguments], start_new_session=True)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(PATIENCE_TICKS):  # ticks, not seconds: a machine may stand still
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("timed out")


def exit_code(process: subprocess.Popen[bytes]) -> int:
    wait_for(lambda: process.poll() is not None)
    return int(process.returncode)


def fits(diary: Path) -> list[list[str]]:
    return [line.split() for line in diary.read_text().splitlines()] if diary.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def claims(results: Path) -> list[Path]:
    return list(results.rglob("*.claim"))
