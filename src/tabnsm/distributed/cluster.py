"""A Ray cluster: one that runs, or one on this machine that is started for a call."""

from __future__ import annotations

import logging
import os
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tabnsm.distributed.storage import RunFolder
from tabnsm.errors import InvalidOptionError, MissingExtraError, TabNSMError
from tabnsm.training.ensemble import EnsembleTraining

# Nothing is sent to anybody, and what a user has set wins.
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TRAIN_V2_ENABLED": "1"}
# Ray replaces 127.0.0.1 by the address of the machine in its network.
_LOOPBACK = {"_node_ip_address": "127.0.0.2"}
_OBJECT_STORE = 2**31
"""Most bytes of memory for objects of a cluster that is started here; Ray wants 30 % of all."""
_SECONDS_TO_ANSWER = 5.0


class ClusterTraining(EnsembleTraining):
    """Training on a Ray cluster; arguments as in `tabnsm.distributed.fit`.

    Set `num_workers`, `use_gpu`, `cpus`, `folder` and `work_dir` before `train`.
    """

    num_workers: int
    use_gpu: bool
    cpus: float
    folder: RunFolder
    work_dir: str | Path | None


def import_ray() -> Any:
    """Ray, or an error that names the extra."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.train
    except ImportError as error:
        raise MissingExtraError("ray", "Fits and predictions on many machines") from error
    return ray


@contextmanager
def cluster(address: str | None, num_workers: int, cpus: float, gpus: float) -> Iterator[Any]:
    """Connect to a cluster, unless this process is connected; yields Ray.

    Parameters
    ----------
    address : str or None
        "auto" for the one on this machine, or host:port; None for RAY_ADDRESS, if that is set, or
        a new one on this machine that ends with the block.
    num_workers : int
    cpus, gpus : float
        That each worker asks for.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    if address is None and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        # Ray listens on all interfaces, and whoever reaches it can run code: with a secret, nobody.
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray = import_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, address, num_workers)
    try:
        _check_resources(ray, num_workers, {"CPU": cpus, "GPU": gpus})
        yield ray
    finally:
        if is_ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None, num_workers: int) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address is not None:
            _check_answers(address)
            ray.init(address=address, **quiet)
            return
        ray.init(
            address="local",
            # One more than workers: Ray Data would wait for ever for a core of its own.
            num_cpus=max(os.cpu_count() or 1, num_workers + 1),
            object_store_memory=_object_store_bytes(),
            include_dashboard=False,
            **(_LOOPBACK if sys.platform == "linux" else {}),
            **quiet,
        )
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        what = "start on this machine" if address is None else f"be reached at {address!r}"
        reason = str(error).strip().split("\n", 1)[0]
        raise InvalidOptionError(
            f"A Ray cluster must be able to {what} ({reason}). Start one with: ray start --head"
        ) from error


def _check_answers(address: str) -> None:
    """Connect to host:port once: where nothing listens, Ray would try for many minutes."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)", address)
    if found is not None:
        place = found[1], int(found[2])
        socket.create_connection(place, timeout=_SECONDS_TO_ANSWER).close()


def _object_store_bytes() -> int:
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(min(free // 4, _OBJECT_STORE), 80 * 2**20)


def _check_resources(ray: Any, num_workers: int, each: dict[str, float]) -> None:
    """Refuse what would wait for ever."""
    there = ray.cluster_resources()
    for kind, amount in each.items():
        if amount * num_workers > there.get(kind, 0.0):
            raise InvalidOptionError(
                f"num_workers must be at most what the cluster has, got {num_workers} with "
                f"{amount:g} {kind} each, where it has {there.get(kind, 0.0):g}. Start more nodes, "
                "or ask for fewer workers."
            )


def failure(error: BaseException, kept: str, what: str = "Training") -> TabNSMError:
    """The error of a cluster as one line, and what to do."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return TabNSMError(f"{what} on the cluster failed: {_reason(cause)} {kept}")


def _reason(cause: BaseException) -> str:
    """The line that names the error; below it Ray may give hints, above it a traceback."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    for kind in (r"tabnsm\.errors\.\w+", r"(?!ray\.)[\w.]*(?:Error|Exception)"):
        found = [match[1] for line in lines if (match := re.fullmatch(f"{kind}: (.+)", line))]
        if found:
            return found[-1]
    return lines[-1] if lines else type(cause).__name__
