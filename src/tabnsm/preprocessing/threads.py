"""Work shared out to threads in which torch itself uses one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of a function on many items, in order, from as many threads as torch may use.

    In each of them torch runs on one thread. Whole items side by side need no waiting within
    an operation, and their bits do not depend on the number of threads. The number that the
    caller and other threads see stays as it is.

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
    n_threads = torch.get_num_threads()
    if n_threads == 1 or not items:
        return [function(item) for item in items]
    n_workers = min(n_threads, len(items))
    n_set, restored = threading.Semaphore(0), threading.Event()

    def use_one_thread() -> None:
        torch.set_num_threads(1)
        # A thread takes the number over at its first look, which must come before it changes.
        torch.get_num_threads()
        n_set.release()
        restored.wait()

    pool = ThreadPoolExecutor(n_workers, "tabnsm", initializer=use_one_thread)
    try:
        futures = [pool.submit(function, item) for item in items]
        for _ in range(n_workers):
            n_set.acquire()
        # What a thread sets is also what threads that start later begin with.
        torch.set_num_threads(n_threads)
        restored.set()
        return [future.result() for future in futures]
    finally:
        # After an interrupt, no thread may be left waiting. Nothing may be raised in the threads'
        # beginning: one that comes late would take the pool's word that all is over with it.
        restored.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(n_threads)
