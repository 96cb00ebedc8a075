"""n_jobs: how many networks of a fit are trained side by side."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from joblib.parallel import get_active_backend

from tabnsm.rules import is_integer, require
from tabnsm.threads import is_job_of_threads, thread_count
from tabnsm.training import budget
from tabnsm.training.early_stopping import Patience, epochs_to_wait


def check_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of jobs.

    Examples
    --------
    >>> check_jobs(0)
    Traceback (most recent call last):
    ...
    tabnsm.errors.InvalidOptionError: n_jobs must be None or an integer other than 0 (-1 is all \
cores), got 0.
    """
    rule = "n_jobs must be None or an integer other than 0 (-1 is all cores)"
    require(n_jobs is None or (is_integer(n_jobs, -(2**31)) and n_jobs != 0), rule, n_jobs)


def requested_jobs(n_jobs: int | None) -> int | None:
    """The number of jobs that was asked for: the option, else joblib's context, else None.

    Examples
    --------
    >>> with joblib.parallel_config(n_jobs=-2):
    ...     requested_jobs(None), requested_jobs(3)
    (-2, 3)
    """
    if n_jobs is not None:
        return int(n_jobs)
    found: int | None = get_active_backend()[1]
    return found


def side_by_side(n_jobs: int | None, n_networks: int, device: torch.device) -> int:
    """Most networks to train at the same time, this process's own included.

    A process that is itself one of several workers, such as those of ``GridSearchCV(n_jobs=2)``,
    has its share of the cores and no more.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: -1 is all cores, -2 all but one. None is the number of an active
        ``joblib.parallel_config``; without one, as many as torch has threads.
    n_networks : int
    device : torch.device

    Returns
    -------
    int

    Examples
    --------
    >>> side_by_side(1, 8, torch.device("cpu"))
    1
    """
    n_jobs = requested_jobs(n_jobs)
    if n_networks == 1 or n_jobs == 1 or device.type != "cpu" or not can_start_workers():
        return 1
    if budget.clock is not time.monotonic:
        return 1  # one that counts the work of this process would not count the workers'
    if is_job_of_threads():
        return 1
    if n_jobs is None:
        wanted = thread_count()
    else:
        wanted = int(n_jobs) if n_jobs > 0 else max(joblib.cpu_count() + 1 + int(n_jobs), 1)
    if multiprocessing.current_process().name != "MainProcess":
        wanted = min(wanted, thread_count())
    return min(wanted, n_networks)


def can_start_workers() -> bool:
    """Whether this is a Python that can start another one like it.

    Not a program that has Python inside, and not Windows, where an open file cannot be handed on.
    """
    name = Path(sys.executable or "").name.lower()
    return os.name == "posix" and name.startswith("python") and not hasattr(sys, "frozen")


def pays_off(
    seconds: np.ndarray | list[float], n_left: int, max_epochs: int, patience: Patience
) -> bool:
    """Whether the networks that are not begun take long enough to start workers for them.

    Parameters
    ----------
    seconds : sequence of float
        Since its beginning, after each epoch of the network that is being trained.
    n_left : int
        Networks that are not begun.
    max_epochs : int
    patience : int or "auto"

    Returns
    -------
    bool

    Examples
    --------
    >>> pays_off([0.1, 0.2, 0.3], n_left=7, max_epochs=100, patience=16)
    True
    >>> pays_off([0.1, 0.2, 0.3], n_left=7, max_epochs=5, patience=16)
    False
    """
    if len(seconds) < 2:
        return False  # the first epoch is no measure: caches are empty, kernels are opened
    per_epoch = (seconds[-1] - seconds[0]) / (len(seconds) - 1)
    n_epochs = min(max_epochs, max(len(seconds), 2 * epochs_to_wait(patience, len(seconds))))
    return bool(per_epoch * n_epochs * n_left >= MIN_SECONDS)


MIN_SECONDS = 6.0
"""A worker needs about one second to start, several where nothing is in the disk's cache."""
