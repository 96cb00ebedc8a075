"""Threads of a fit and of a prediction.

Threads of torch spin for some milliseconds after each operation, so that a busy neighbour on the
machine slows small steps down many times over, and they do not survive a fork. While tabnsm works,
torch therefore uses one thread. The compiled kernels and the text encoder start threads of their
own, which wait without spinning, and whose number does not change a bit of the result.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from joblib.parallel import get_active_backend

Item = TypeVar("Item")
Result = TypeVar("Result")

_lock = threading.Lock()
_local = threading.local()
_jobs_of_joblib: set[threading.Thread] = set()  # those that may be alive
_SECONDS_TO_END = 5.0


class _Users:
    """How many blocks use one torch thread at this moment, and how many threads torch had."""

    n_active = 0
    n_threads = 1


def thread_count() -> int:
    """Number of threads that work may be shared among: torch's, also inside `one_torch_thread`."""
    count: int | None = getattr(_local, "count", None)
    return torch.get_num_threads() if count is None else count


def uses_own_threads() -> bool:
    """Whether this thread is inside `one_torch_thread`, where the kernels start their own."""
    return getattr(_local, "count", None) is not None


def is_job_of_threads() -> bool:
    """Whether joblib runs this thread as one of several jobs, which share the cores already.

    Of jobs in processes of their own, joblib limits the threads itself.

    Examples
    --------
    >>> from joblib import Parallel, delayed
    >>> is_job_of_threads(), Parallel(2, backend="threading")([delayed(is_job_of_threads)()])
    (False, [True])
    """
    if threading.current_thread() is threading.main_thread():
        return False
    return bool(get_active_backend()[0].nesting_level)  # 0 outside of all jobs


def set_thread_count(count: int) -> None:
    """Share the rest of this `one_torch_thread` block among so many threads; else no effect.

    Examples
    --------
    >>> with one_torch_thread():
    ...     set_thread_count(3)
    ...     thread_count()
    3
    """
    if uses_own_threads():
        _local.count = count


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch use one thread, and the kernels as many as torch had; one in a thread of joblib.

    Blocks may be nested and may run in several Python threads at a time. The number that torch
    had before is back at the end.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with one_torch_thread():
    ...     torch.get_num_threads(), thread_count() == before
    (1, True)
    >>> torch.get_num_threads() == before
    True
    """
    outer: int | None = getattr(_local, "count", None)
    with _lock:
        own = _own_threads() if outer is None else outer
        if _Users.n_active == 0:
            _Users.n_threads = own
        _Users.n_active += 1
        _local.count = own
        if outer is None and is_job_of_threads():
            _local.count = 1
            ended = {thread for thread in _jobs_of_joblib if not thread.is_alive()}
            _jobs_of_joblib.difference_update(ended)
            _jobs_of_joblib.add(threading.current_thread())
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            _local.count = outer
            _Users.n_active -= 1
            # Part of torch's number holds for all threads: those that are still at work keep 1,
            # and this thread gets its own back after its next block.
            is_last = _Users.n_active == 0
            _local.owed = None if is_last else own
            if is_last:
                torch.set_num_threads(own)


def _own_threads() -> int:
    """Number of torch's threads in this Python thread, as if no block were active."""
    owed: int | None = getattr(_local, "owed", None)
    if owed is not None:
        return owed
    found = torch.get_num_threads()
    # A thread that starts beside an active block begins with one.
    return _Users.n_threads if found == 1 and _Users.n_active else found


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of a function on many items, in order, from as many threads as `thread_count`.

    In each of them torch runs on one thread. Whole items side by side need no waiting within
    an operation, and their bits do not depend on the number of threads.

    Parameters
    ----------
    function : callable
        Takes an item; spends its time in torch.
    items : sequence
        What to do.

    Returns
    -------
    list
        One result per item.

    Examples
    --------
    >>> map_in_threads(torch.sqrt, [torch.tensor(4.0), torch.tensor(9.0)])
    [tensor(2.), tensor(3.)]
    """
    n_workers = min(thread_count(), len(items))
    with one_torch_thread():
        if n_workers <= 1:
            return [function(item) for item in items]
        pool = ThreadPoolExecutor(n_workers, "tabnsm", initializer=_use_one_thread)
        try:
            return [future.result() for future in [pool.submit(function, x) for x in items]]
        finally:
            pool.shutdown(cancel_futures=True)


def _use_one_thread() -> None:
    """Make a worker of `map_in_threads` leave all further sharing out."""
    torch.set_num_threads(1)
    _local.count = 1


def _join_jobs_of_joblib() -> None:
    """Let joblib's threads free their last model before the interpreter ends.

    joblib does not wait for the threads of its pool. One that frees tensors while the interpreter
    shuts down aborts the process, since torch cannot take the lock of the interpreter any more.
    """
    end = time.monotonic() + _SECONDS_TO_END
    for thread in _jobs_of_joblib.copy():
        thread.join(max(end - time.monotonic(), 0))


def _after_fork() -> None:
    """Give a forked child a torch that works: the threads of its parent are not there."""
    global _lock
    _lock = threading.Lock()
    _local.count = _local.owed = None
    _Users.n_active = 0
    _jobs_of_joblib.clear()
    torch.set_num_threads(1)


atexit.register(_join_jobs_of_joblib)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
