"""torch as a new process has it, whatever the caller has set, while the library runs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from tabnsm.threads import one_torch_thread

_lock = threading.Lock()


class _Users:
    """How many blocks need the dtype float32 at this moment, and what the caller's dtype was."""

    n_active = 0
    dtype = torch.float32


@contextmanager
def usual_torch() -> Iterator[None]:
    """Run with torch's own settings, and give the caller's back afterwards.

    Default dtype float32, default device CPU, gradients recorded, neither inference mode nor
    autocast, one thread beside those that `tabnsm.threads` starts: the settings that a fit needs,
    and by which a model predicts the same bits everywhere. Also a decorator.

    Examples
    --------
    >>> with torch.no_grad(), usual_torch():
    ...     torch.is_grad_enabled()
    True
    """
    with ExitStack() as settings:
        # A mode slows down every call of torch, so that none is entered without need.
        if torch.get_default_device().type != "cpu":
            settings.enter_context(torch.device("cpu"))
        if torch.is_inference_mode_enabled():
            settings.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            settings.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                settings.enter_context(torch.autocast(device, enabled=False))
        settings.enter_context(_float32())
        settings.enter_context(one_torch_thread())
        yield


@contextmanager
def _float32() -> Iterator[None]:
    """Default dtype float32 until the last of the threads that need it is done.

    The default dtype holds for all threads: the first to leave must not change it for the others.
    """
    with _lock:
        if _Users.n_active == 0:
            _Users.dtype = torch.get_default_dtype()
            if _Users.dtype != torch.float32:
                torch.set_default_dtype(torch.float32)
        _Users.n_active += 1
    try:
        yield
    finally:
        with _lock:
            _Users.n_active -= 1
            if _Users.n_active == 0 and _Users.dtype != torch.float32:
                torch.set_default_dtype(_Users.dtype)


def _after_fork() -> None:
    """Give a forked child the caller's dtype: threads of its parent are not there to do it."""
    global _lock
    _lock = threading.Lock()
    if _Users.n_active and _Users.dtype != torch.float32:
        torch.set_default_dtype(_Users.dtype)
    _Users.n_active = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
