"""Find and open the compiled kernel that suits this machine."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from tabnsm.errors import InvalidOptionError, TabNSMWarning
from tabnsm.threads import uses_own_threads

VARIANTS = ("baseline", "avx2", "avx512")
"""Compiled variants, in the order of the levels that the library reports for the processor."""


def available() -> str:
    """Name of the compiled kernel in use: "avx512", "avx2", "baseline" or "none".

    The widest variant that was built and that the processor can run; the environment variable
    ``TABNSM_KERNEL`` set to one of the names forces that one.

    Examples
    --------
    >>> available() in ("avx512", "avx2", "baseline", "none")
    True
    """
    forced = os.environ.get("TABNSM_KERNEL", "")
    if not forced:
        return _best()
    if forced not in (*VARIANTS, "none"):
        raise InvalidOptionError(
            f"TABNSM_KERNEL must be avx512, avx2, baseline or none, got {forced!r}. "
            "Unset it to let tabnsm choose."
        )
    if forced == "none":
        return forced
    if VARIANTS.index(forced) > _cpu_level() or _open(forced) is None:
        raise InvalidOptionError(
            f"TABNSM_KERNEL must name a kernel that was built and that this processor runs, got "
            f"{forced!r}. Unset it to let tabnsm choose."
        )
    return forced


def library(d_head: int) -> ctypes.CDLL | None:
    """Open library for heads of this width, or None where the torch path must serve."""
    variant = available()
    if variant == "none":
        if not os.environ.get("TABNSM_KERNEL"):
            _warn_missing()
        return None
    # Vectors of 16 would be half empty.
    if variant == "avx512" and d_head <= 8 and not os.environ.get("TABNSM_KERNEL"):
        variant = "avx2"
    return _open(variant)


def thread_pool() -> int | None:
    """Address of the function that runs work on torch's own threads; None if there is none.

    Beside several torch threads, threads of one's own would compete with these, which keep
    spinning for some milliseconds after each operation. Inside `one_torch_thread` there are none,
    and in a forked child the pool does not exist: there the kernels start their own threads.
    """
    if uses_own_threads() or os.getpid() != _IMPORTED_BY:
        return None
    return _gomp_parallel()


_IMPORTED_BY = os.getpid()


@functools.cache
def _gomp_parallel() -> int | None:
    if not hasattr(os, "RTLD_NOLOAD"):
        return None
    try:
        runtime = ctypes.CDLL("libgomp.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        return ctypes.cast(runtime.GOMP_parallel, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None


@functools.cache
def _open(variant: str) -> ctypes.CDLL | None:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_{variant}{suffix}")
        if path.exists():
            return ctypes.CDLL(str(path))
    return None


@functools.cache
def _cpu_level() -> int:
    """Index in `VARIANTS` of the widest one that the processor can run; -1 if none was built."""
    baseline = _open("baseline")
    return -1 if baseline is None else int(baseline.tabnsm_cpu_level())


@functools.cache
def _best() -> str:
    for variant in reversed(VARIANTS[: _cpu_level() + 1]):
        if _open(variant) is not None:
            return variant
    return "none"


@functools.cache
def _warn_missing() -> None:
    warnings.warn(
        "The compiled attention kernel of tabnsm is missing, so the slower torch path is used. "
        "Install a C compiler (gcc or clang) and reinstall tabnsm from source, or set "
        "TABNSM_KERNEL=none to silence this.",
        TabNSMWarning,
        stacklevel=4,
    )
