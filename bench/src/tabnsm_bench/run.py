"""Many runs: shared among processes, skipped when finished, retried when failed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.claims import Claim
from tabnsm_bench.evidence import code_state, empty_code, fingerprint
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import empty_result, is_finished, read_result, write_result
from tabnsm_bench.supervise import Ending, Interrupted, Watch, supervise


class Supervise(Protocol):
    """Does one run, and waits for it; arguments as in `tabnsm_bench.supervise.supervise`."""

    def __call__(
        self,
        watch: Watch,
        data_dir: str | Path,
        results_dir: str | Path,
        *,
        n_threads: int,
        stop: threading.Event,
    ) -> Ending:
        """How the run ended."""


class Display(Protocol):
    """Receives the progress of the runs; called from several threads."""

    def started(self, watch: Watch) -> None:
        """A run begins."""

    def ended(self, watch: Watch, ending: Ending) -> None:
        """A run is over."""

    def skipped(self, spec: RunSpec, reason: str) -> None:
        """A run is left alone: "finished" or "claimed"."""


class _Silence:
    def started(self, watch: Watch) -> None:
        pass

    def ended(self, watch: Watch, ending: Ending) -> None:
        pass

    def skipped(self, spec: RunSpec, reason: str) -> None:
        pass


def run_one(
    spec: RunSpec, data_dir: str | Path, results_dir: str | Path, *, n_threads: int | None = None
) -> dict[str, Any]:
    """Do one run in a separate process, unless it is finished.

    Parameters
    ----------
    spec : RunSpec
        The run.
    data_dir : str or Path
        Folder of table files.
    results_dir : str or Path
        Folder of all results.
    n_threads : int or None
        Cores to use; None for all.

    Returns
    -------
    dict
        Its result, also if it failed.

    Raises
    ------
    InvalidOptionError
        If another process is at it, so that there is no result yet.
    """
    run_many([spec], data_dir, results_dir, n_threads=n_threads)
    path = spec.path(results_dir)
    if not path.exists():
        raise InvalidOptionError(f"{path} is being made by another process. Wait for it.")
    return read_result(path)


def run_many(
    specs: Iterable[RunSpec],
    data_dir: str | Path,
    results_dir: str | Path,
    *,
    n_processes: int = 1,
    n_threads: int | None = None,
    display: Display | None = None,
    supervise: Supervise = supervise,
) -> list[dict[str, Any]]:
    """Do all runs that are not finished, each in a separate process.

    Other calls may work on the same folder at the same time, on this machine or through a
    shared folder: a run that one of them has claimed is left to it. A run that failed in an
    earlier call is tried once more, and one that was made with other options under the same name
    is run again. After Ctrl-C all that was finished is kept.

    Parameters
    ----------
    specs : iterable of RunSpec
        The runs, in this order.
    data_dir : str or Path
        Folder of table files.
    results_dir : str or Path
        Folder of all results.
    n_processes : int
        Runs at a time.
    n_threads : int or None
        Cores of each run; None shares the machine's among them.
    display : Display or None
        Told of every run that begins and ends.
    supervise : callable
        Does one run: in a process of this machine, or `supervise_on_cluster`.

    Returns
    -------
    list of dict
        The results that are there now, in the order of `specs`.
    """
    if n_processes < 1:
        raise InvalidOptionError(f"n_processes must be >= 1, got {n_processes}.")
    if n_threads is not None and n_threads < 1:
        raise InvalidOptionError(f"n_threads must be >= 1 or None, got {n_threads}.")
    work = list(dict.fromkeys(specs))
    n_each = n_threads or n_cores(n_processes)
    crew = _Crew(work, data_dir, results_dir, n_each, display, supervise)
    crew.work_off(n_processes)
    paths = [spec.path(results_dir) for spec in work]
    return [read_result(path) for path in paths if path.exists()]


def n_cores(n_processes: int = 1) -> int:
    """Cores for each of some processes.

    Parameters
    ----------
    n_processes : int
        How many share the machine.

    Returns
    -------
    int
        At least 1.
    """
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    else:
        available = os.cpu_count() or 1
    return max(1, available // n_processes)


def _is_done(path: Path) -> bool:
    return path.exists() and bool(read_result(path)["state"] == "done")


class _Crew:
    """Threads that each take the next run, and wait for its process."""

    def __init__(
        self,
        specs: Sequence[RunSpec],
        data_dir: str | Path,
        results_dir: str | Path,
        n_threads: int,
        display: Display | None,
        supervise: Supervise,
    ) -> None:
        self.supervise = supervise
        self.data_dir, self.results_dir = data_dir, results_dir
        self.n_threads = n_threads
        self.display: Display = display or _Silence()
        self._specs: Iterator[RunSpec] = iter(specs)
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def work_off(self, n_processes: int) -> None:
        with ThreadPoolExecutor(n_processes) as pool:
            futures = [pool.submit(self._work) for _ in range(n_processes)]
            try:
                # In short steps, since a wait without an end cannot be interrupted everywhere.
                while wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION).not_done:
                    if any(future.done() and future.exception() for future in futures):
                        break
            finally:
                self._stop.set()
            for future in futures:
                future.result()

    def _work(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                spec = next(self._specs, None)
            if spec is None:
                return
            try:
                self._take(spec)
            except Interrupted:
                return

    def _take(self, spec: RunSpec) -> None:
        made_by = fingerprint(spec)
        if is_finished(spec, self.results_dir, made_by):
            return self.display.skipped(spec, "finished")
        path = spec.path(self.results_dir)
        path.parent.mkdir(parents=True, exist_ok=True)
        claim = Claim.acquire(path.with_name(f".{path.name}.claim"))
        if claim is None:
            return self.display.skipped(spec, "claimed")
        with claim:
            # Its last holder may have finished it just before we got the claim.
            if is_finished(spec, self.results_dir, made_by):
                return self.display.skipped(spec, "finished")
            watch = Watch(spec)
            self.display.started(watch)
            ending = self.supervise(
                watch, self.data_dir, self.results_dir, n_threads=self.n_threads, stop=self._stop
            )
            # What other code or options finished before is not lost to a failure.
            if ending.state != "done" and not _is_done(path):
                code = empty_code() | code_state() | {"fingerprint": made_by}
                failure = {"state": ending.state, "error": ending.error, "code": code}
                write_result(empty_result(spec) | failure, self.results_dir)
        self.display.ended(watch, ending)
        return None
