"""Watch over the process of one run: its phase, its time limit, its death."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tabnsm_bench.protocol import RunSpec

_TICK = 0.05
_TAIL_BYTES = 2000
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
# A method that keeps to its limit still has to end its last step.
_GRACE_SECONDS, _GRACE_SHARE = 2.0, 0.1


class Interrupted(Exception):
    """The run was stopped because the whole work was."""


@dataclass
class Watch:
    """State of a run in progress.

    Parameters
    ----------
    spec : RunSpec
        The run.
    phase : str
        "start", "encode", "fit", "predict" or "finished".
    seconds : float
        Time in this phase; a machine that slept does not count.
    error : str or None
        The error that the run's process reported.
    """

    spec: RunSpec
    phase: str = "start"
    seconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Ending:
    """How a run's process ended.

    Parameters
    ----------
    state : {"done", "failed", "timeout"}
        "done" means that its result is on disk.
    error : str or None
        What is known of a failure.
    """

    state: str
    error: str | None = None


def supervise(
    watch: Watch,
    data_dir: str | Path,
    results_dir: str | Path,
    *,
    n_threads: int,
    stop: threading.Event,
) -> Ending:
    """Do one run in a separate process, and wait for it.

    Parameters
    ----------
    watch : Watch
        Kept up to date while it runs.
    data_dir, results_dir : str or Path
        Folders of tables and results.
    n_threads : int
        Cores that the run may use.
    stop : threading.Event
        Set from outside to end the run at once.

    Returns
    -------
    Ending

    Raises
    ------
    Interrupted
        If `stop` was set.
    """
    request = {
        "spec": watch.spec.to_dict(),
        "data_dir": str(data_dir),
        "results_dir": str(results_dir),
        "n_threads": n_threads,
    }
    # What a method that was killed left in its temporary folder goes with it.
    with (
        tempfile.TemporaryDirectory(prefix="tabnsm-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as log,
    ):
        process = _start(n_threads, log, folder)
        try:
            reader = threading.Thread(target=_follow, args=(process, watch), daemon=True)
            reader.start()
            _send(process, request | {"scratch": folder})
            ending = _wait(process, watch, stop)
            reader.join()
        finally:
            _kill(process)
        if watch.phase == "finished":
            return Ending("done")
        reason = watch.error or _reason(process.returncode, _tail(log))
        return ending or Ending("failed", reason)


def _start(n_threads: int, log: IO[bytes], folder: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {name: str(n_threads) for name in _THREAD_VARIABLES}
    environment |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    return subprocess.Popen(
        [sys.executable, "-m", "tabnsm_bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment,
        # A group of its own: Ctrl-C reaches the parent alone, which then ends the run in order,
        # and processes that the method starts can be ended with it.
        start_new_session=sys.platform != "win32",
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _send(process: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert process.stdin is not None
    # A process that is gone already is met by its exit code.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()


def _follow(process: subprocess.Popen[bytes], watch: Watch) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        message = json.loads(line)
        watch.error = message.get("error", watch.error)
        watch.phase, watch.seconds = message.get("phase", watch.phase), 0.0


def _wait(process: subprocess.Popen[bytes], watch: Watch, stop: threading.Event) -> Ending | None:
    limit = watch.spec.time_limit
    max_seconds = None if limit is None else limit * (1 + _GRACE_SHARE) + _GRACE_SECONDS
    last = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TICK)
            return None
        now = time.monotonic()
        # A stopped process or a closed lid must not eat up the limit.
        watch.seconds += min(now - last, 20 * _TICK)
        last = now
        if stop.is_set():
            raise Interrupted
        is_watched = watch.phase in ("fit", "predict")
        if max_seconds is not None and is_watched and watch.seconds > max_seconds:
            _kill(process)
            return Ending(
                "timeout",
                f"killed after {watch.seconds:.0f} s in phase {watch.phase!r}, "
                f"with a time limit of {limit:g} s",
            )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and all that it started; harmless if they have ended."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL_BYTES))
    return log.read().decode(errors="replace").strip()


def _reason(code: int, tail: str) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            hint = " (out of memory?)" if name == "SIGKILL" else ""
            return f"killed by {name}{hint}" + (f"\n{tail}" if tail else "")
    return tail or f"ended with exit code {code}"
