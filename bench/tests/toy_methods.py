"""Small methods for tests of the runner, found by its processes through PYTHONPATH."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


class Linear:
    """Least squares; `takes_frames` has it read the numbers of the frames instead."""

    def __init__(self, diary: str = "", takes_frames: bool = False) -> None:
        self.takes_frames = takes_frames
        self.diary = os.environ.get("TOY_DIARY", "") or diary

    def fit(self, data: Any, *, seed: int, time_limit: Any, n_threads: int) -> dict[str, Any]:
        if self.diary:
            with Path(self.diary).open("a") as stream:
                stream.write(f"{type(self).__name__} {seed} {os.getpid()}\n")
        x = self._x(data.train.x, data.train_frame)
        self.weights = np.linalg.lstsq(x, data.train.y, rcond=None)[0]
        return {"seed": seed, "package": "scikit-learn", "notes": ["a toy"]}

    def predict(self, x: Any, frame: Any) -> Any:
        return self._x(x, frame) @ self.weights

    def _x(self, x: Any, frame: Any) -> Any:
        values = frame.to_numpy(dtype=float) if self.takes_frames else x.astype(float)
        return np.column_stack([values, np.ones(len(values))])


class Chatty(Linear):
    """Prints, also past Python's own output."""

    def fit(self, data: Any, **options: Any) -> dict[str, Any]:
        print("to standard output")
        os.write(1, b"beneath it\n")
        return super().fit(data, **options)


class Threads(Linear):
    def fit(self, data: Any, *, n_threads: int, **options: Any) -> dict[str, Any]:
        facts = super().fit(data, n_threads=n_threads, **options)
        return facts | {"n_threads": n_threads, "omp": os.environ["OMP_NUM_THREADS"]}


class Diverged(Linear):
    def predict(self, x: Any, frame: Any) -> Any:
        return np.full(len(x), np.nan)


class Failing(Linear):
    """Fails until the file named by TOY_CURE exists."""

    def fit(self, data: Any, **options: Any) -> dict[str, Any]:
        facts = super().fit(data, **options)
        if not Path(os.environ["TOY_CURE"]).exists():
            raise RuntimeError("not cured yet")
        return facts


class Killed(Linear):
    """Killed as by the system when memory runs out, until the file named by TOY_CURE exists."""

    def fit(self, data: Any, **options: Any) -> dict[str, Any]:
        facts = super().fit(data, **options)
        if not Path(os.environ["TOY_CURE"]).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return facts


class Endless(Linear):
    """Never ends, and starts a process that never ends either."""

    def fit(self, data: Any, **options: Any) -> dict[str, Any]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["TOY_CHILD"]).write_text(str(child.pid))
        super().fit(data, **options)
        time.sleep(600)
        raise AssertionError("nobody ended this run")
