"""A method that lives in an environment of its own and is spoken to through files."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

import tabnsm.errors
from tabnsm.errors import InvalidOptionError, TabNSMError
from tabnsm_bench.baselines.environment import Environment
from tabnsm_bench.protocol import Prepared

_SCRIPT = Path(__file__).with_name("serve.py")
_LIBRARY = Path(tabnsm.errors.__file__).parent
_TAIL_BYTES = 2000
# What a method may take beyond its time limit to end its last step, before it is killed.
GRACE_SECONDS = 60.0
_REMEDY = "Give it fewer rows (--max-rows) or a smaller size (options after its name)."


class RemoteError(RuntimeError, TabNSMError):
    """A method that failed, or whose process ended, in its environment."""


class RemoteMethod:
    """A baseline in an environment; its process starts here and ends with this object.

    Parameters
    ----------
    environment : Environment
        Where to run it.
    key : str
        The baseline.
    options : mapping
        Its options.
    grace : float
        Seconds beyond a time limit after which the process is killed.
    """

    takes_frames = False

    def __init__(
        self,
        environment: Environment,
        key: str,
        options: Mapping[str, Any],
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.environment = environment
        self.key = key
        self.grace = grace
        self._folder = tempfile.TemporaryDirectory(prefix="tabnsm-", ignore_cleanup_errors=True)
        self._log = (Path(self._folder.name) / "log").open("w+b")
        self._process = subprocess.Popen(
            [str(environment.python), "-P", "-u", str(_SCRIPT), str(_LIBRARY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYTHONNOUSERSITE": "1", "PYTHONPATH": "", "PYTHONWARNINGS": ""},
        )
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        reader = threading.Thread(
            target=_follow, args=(self._process.stdout, self._replies), daemon=True
        )
        reader.start()
        self.close = weakref.finalize(self, _end, self._process, reader, self._log, self._folder)
        self._ask({"do": "make", "key": key, "options": dict(options)})

    @property
    def pid(self) -> int:
        """Process that the method runs in."""
        return self._process.pid

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit in the environment; see `Method.fit`.

        Raises
        ------
        TimeoutError
            If the method went on long after its time limit and was killed.
        RemoteError
            If it failed there.
        """
        path = self._path("fit.npz")
        np.savez(
            path,
            train_x=data.train.x,
            train_y=data.train.y,
            validation_x=data.validation.x,
            validation_y=data.validation.y,
        )
        request = {
            "do": "fit",
            "arrays": path,
            "category_sizes": list(data.category_sizes),
            "feature_names": list(data.feature_names),
            "seed": seed,
            "time_limit": time_limit,
            "n_threads": n_threads,
        }
        limit = None if time_limit is None else time_limit + self.grace
        facts: dict[str, Any] = self._ask(request, limit)["facts"]
        os.unlink(path)
        return facts | {"environment": self.environment.name}

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict in the environment; see `Method.predict`."""
        arrays, out = self._path("x.npz"), self._path("y.npz")
        np.savez(arrays, x=x)
        self._ask({"do": "predict", "arrays": arrays, "out": out})
        with np.load(out) as found:
            predicted: NDArray[np.float64] = found["y"]
        return predicted

    def _path(self, name: str) -> str:
        if not self.close.alive:
            raise RemoteError(f"The process of {self.key} has ended. Make the method again.")
        return str(Path(self._folder.name) / name)

    def _ask(self, request: dict[str, Any], seconds: float | None = None) -> dict[str, Any]:
        assert self._process.stdin is not None
        # A process that is gone already is met by the end of its output.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        try:
            line = self._replies.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise TimeoutError(
                f"{self.key} did not end within {seconds:g} s, its time limit and a grace of "
                f"{self.grace:g} s, and was killed."
            ) from None
        if not line:
            code, tail = self._process.wait(), self._tail()
            self._replies.put(b"")  # also the answer to any later question
            raise RemoteError(f"{_end_of(self.key, code)}\n{tail}")
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            if reply["kind"] == InvalidOptionError.__name__:
                raise InvalidOptionError(reply["error"])
            if reply["kind"] == "MemoryError" or "allocate memory" in reply["error"]:
                raise MemoryError(f"{self.key} ran out of memory. {_REMEDY} {reply['error']}")
            raise RemoteError(
                f"{self.key} failed in the environment {self.environment.name}: "
                f"{reply['kind']}: {reply['error']} [{reply['where']}]"
            )
        return reply

    def _tail(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - _TAIL_BYTES))
        return self._log.read().decode(errors="replace").strip()


def _end_of(key: str, code: int) -> str:
    """How a process ended, in a sentence.

    >>> _end_of("saint", 1)
    'The process of saint ended with exit code 1.'
    """
    if code == -signal.SIGKILL:
        return (
            f"The process of {key} was killed from outside (SIGKILL), which is what the system "
            f"does when memory runs out. {_REMEDY}"
        )
    return f"The process of {key} ended with exit code {code}."


def _follow(stream: IO[bytes], replies: queue.SimpleQueue[bytes]) -> None:
    with stream:
        for line in stream:
            replies.put(line)
    replies.put(b"")


def _end(
    process: subprocess.Popen[bytes],
    reader: threading.Thread,
    log: IO[bytes],
    folder: tempfile.TemporaryDirectory[str],
) -> None:
    process.kill()
    process.wait()
    reader.join()
    for stream in (process.stdin, log):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    folder.cleanup()
