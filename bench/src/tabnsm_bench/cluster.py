"""Runs on the machines of a Ray cluster, instead of in processes of this one."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

from tabnsm.distributed.cluster import import_ray
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import read_result, write_result
from tabnsm_bench.supervise import Ending, Interrupted, Watch, supervise

MAX_RETRIES = 1
"""How often a run is begun again whose machine was lost."""
_TICK = 0.2


def supervise_on_cluster(
    watch: Watch,
    data_dir: str | Path,
    results_dir: str | Path,
    *,
    n_threads: int,
    stop: threading.Event,
) -> Ending:
    """Do one run on some machine of the cluster, and wait for it.

    Parameters
    ----------
    watch, n_threads, stop
        As in `supervise`.
    data_dir : str or Path
        Folder of tables, which all machines must have under this name.
    results_dir : str or Path
        Folder of results of this machine alone.

    Returns
    -------
    Ending

    Raises
    ------
    Interrupted
        If `stop` was set.
    """
    ray = import_ray()
    task = ray.remote(run_there).options(num_cpus=n_threads, max_retries=MAX_RETRIES)
    watch.phase = "fit"
    running = task.remote(watch.spec.to_dict(), str(Path(data_dir).resolve()), n_threads)
    while not ray.wait([running], timeout=_TICK)[0]:
        watch.seconds += _TICK
        if stop.is_set():
            ray.cancel(running, force=True)
            raise Interrupted
    try:
        state, error, result = ray.get(running)
    except ray.exceptions.RayError as lost:
        return Ending("failed", str(lost).strip().splitlines()[0])
    if result is not None:
        write_result(result, results_dir)
        watch.phase = "finished"
    return Ending(state, error)


def run_there(
    spec: dict[str, Any], data_dir: str, n_threads: int
) -> tuple[str, str | None, dict[str, Any] | None]:
    """Do a run in a process of this machine; how it ended, and its result."""
    asked = RunSpec.from_dict(spec)
    with tempfile.TemporaryDirectory(prefix="tabnsm-") as folder:
        watch = Watch(asked)
        ending = supervise(watch, data_dir, folder, n_threads=n_threads, stop=threading.Event())
        path = asked.path(folder)
        return ending.state, ending.error, read_result(path) if path.exists() else None
