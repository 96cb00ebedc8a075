"""WorkerPool: processes that train networks of a fit beside the process of the fit."""

from __future__ import annotations

import builtins
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

from torch import Tensor

from tabnsm.errors import TabNSMWarning
from tabnsm.training.checkpoint import CheckpointFolder
from tabnsm.training.exchange import receive, send, torch_settings, write_fit
from tabnsm.training.history import History
from tabnsm.training.network_queue import NetworkQueue
from tabnsm.training.prepare import PreparedFit

# A worker is no fork, because threads of torch do not survive one, and it does not import the
# user's script, which may have no `if __name__ == "__main__"`. Ctrl-C is for the fit alone.
_PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
from tabnsm.training.worker import main
main()
"""
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class EpochDone:
    """A worker has trained one more epoch of a network."""

    number: int
    history: History


@dataclass(frozen=True)
class NetworkDone:
    """A worker has ended with a network; without weights where it diverged."""

    number: int
    reason: str
    history: History
    weights: dict[str, Tensor]


@dataclass(frozen=True)
class WorkerLost:
    """A worker ended by itself; `number` is the network that it was training, if any."""

    number: int | None
    cause: str

    def message(self, n_networks: int) -> str:
        """A warning about it."""
        if self.number is None:
            return (
                f"A worker process {self.cause}; its networks are trained without it. "
                "Set n_jobs=1 to train all of them in one process."
            )
        return (
            f"A worker process {self.cause} in network {self.number + 1} of {n_networks}, which "
            "is trained again from its start. If memory is short, lower n_jobs."
        )


@dataclass(frozen=True)
class WorkerWarned:
    """Something raised a warning in a worker."""

    category: type[Warning]
    text: str


Event = EpochDone | NetworkDone | WorkerLost | WorkerWarned


class WorkerPool:
    """Start worker processes, give them networks of a queue, and collect what they report.

    A thread for each worker talks to it; what it hears goes into `events`, for the thread of the
    fit to act on. Workers end with `close`, or by themselves when this process is gone.

    Parameters
    ----------
    prepared : PreparedFit
    networks : NetworkQueue
    n_threads : int
        Of each worker.
    checkpoints : CheckpointFolder or None
    resume : bool
        Whether networks go on from their checkpoints.

    Attributes
    ----------
    is_started : bool
    events : SimpleQueue of Event
    """

    def __init__(
        self,
        prepared: PreparedFit,
        networks: NetworkQueue,
        n_threads: int = 1,
        checkpoints: CheckpointFolder | None = None,
        resume: bool = False,
    ) -> None:
        self.prepared = prepared
        self.networks = networks
        self.n_threads = n_threads
        self.checkpoints = checkpoints
        self.resume = resume
        self.is_started = False
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._file: IO[bytes] | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._greeted: list[subprocess.Popen[bytes]] = []
        self._is_closing = False

    @property
    def process_ids(self) -> list[int]:
        """Of the workers that were started."""
        return [process.pid for process in self._processes]

    def start(self, n_workers: int) -> None:
        """Start workers; where that cannot be done, `events` say why."""
        self.is_started = True
        try:
            self._file, fit = write_fit(self.prepared)
            folder = self.checkpoints
            greeting = {
                "fit": fit,
                "descriptor": self._file.fileno(),
                "n_threads": self.n_threads,
                "torch": torch_settings(),
                "checkpoint": None if folder is None else (str(folder.path), folder.fingerprint),
            }
            for _ in range(n_workers):
                process = self._open()
                self._processes.append(process)
                thread = threading.Thread(target=self._serve, args=(process, greeting), daemon=True)
                self._threads.append(thread)
                thread.start()
        except OSError as error:
            self.events.put(WorkerLost(None, f"could not be started ({error})"))

    def wait(self, seconds: float) -> Event | None:
        """The next event, or None if there is none for so long."""
        with suppress(queue.Empty):
            return self.events.get(timeout=seconds)
        return None

    def stop(self) -> None:
        """Ask all workers to end their networks with the epoch that they are in.

        The queue must be closed: a worker that is just starting finds no network there.
        """
        for process in list(self._greeted):
            with suppress(OSError, ValueError):  # it is gone, or has nothing more to do
                send(cast("IO[bytes]", process.stdin), {"stop": True}, None)

    def close(self) -> None:
        """End all workers, whatever they do."""
        self._is_closing = True
        for process in self._processes:
            process.kill()  # they have nothing to lose: networks that are done were sent
        for process in self._processes:
            process.wait()
        for thread in self._threads:
            thread.join()
        if self._file is not None:
            self._file.close()

    def _open(self) -> subprocess.Popen[bytes]:
        assert self._file is not None
        threads = dict.fromkeys(_THREAD_VARIABLES, str(self.n_threads))
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | threads,
            pass_fds=(self._file.fileno(),),
        )

    def _serve(self, process: subprocess.Popen[bytes], greeting: dict[str, Any]) -> None:
        """Give a worker one network after the other, until there is none or it is gone."""
        number, error, is_idle = None, "", False
        try:
            send(cast("IO[bytes]", process.stdin), greeting, None)
            self._greeted.append(process)
            while (received := receive(cast("BinaryIO", process.stdout))) is not None:
                message, weights = received
                if message["kind"] == "error":
                    error = message["text"].strip().splitlines()[-1]
                    break
                if message["kind"] in ("epoch", "warning"):
                    self._report(message)
                    continue
                if message["kind"] == "done":
                    self._finish(message, weights)
                job = self.networks.take_for_worker()
                number, is_idle = (None, True) if job is None else (job[0], False)
                if job is None:
                    break
                order = {"number": job[0], "seconds": job[1], "resume": self.resume}
                send(cast("IO[bytes]", process.stdin), order, None)
        except (OSError, ValueError):
            pass  # it is gone, or not what it should be
        _hang_up(process)
        if not self._is_closing and not is_idle:
            if number is not None:
                self.networks.give_back(number)
            self.events.put(WorkerLost(number, error or _cause(process)))
        cast("BinaryIO", process.stdout).close()

    def _report(self, message: dict[str, Any]) -> None:
        if message["kind"] == "warning":
            self.events.put(WorkerWarned(warning_class(message["category"]), message["text"]))
            return
        self.events.put(EpochDone(message["number"], History.from_dict(message["history"])))

    def _finish(self, message: dict[str, Any], weights: dict[str, Tensor]) -> None:
        number, history = message["number"], History.from_dict(message["history"])
        self.events.put(NetworkDone(number, message["reason"], history, weights))
        self.networks.come_home(number)


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe to a worker, which ends it."""
    with suppress(OSError):
        cast("IO[bytes]", process.stdin).close()


def _cause(process: subprocess.Popen[bytes]) -> str:
    """Why a process ended that was not told to."""
    try:
        status = process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        return "stopped answering"
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def warning_class(name: str) -> type[Warning]:
    """The class of a warning by its name; UserWarning for those of other packages."""
    found = TabNSMWarning if name == "TabNSMWarning" else getattr(builtins, name, UserWarning)
    is_warning = isinstance(found, type) and issubclass(found, Warning)
    return found if is_warning else UserWarning
