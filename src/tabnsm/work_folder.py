"""A folder for the arrays of a fit that is larger than memory: files that are mapped."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import mmap
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from tabnsm.atomic import atomic_write
from tabnsm.errors import InvalidOptionError

_PREFIX = "tabnsm-work-"
_LOCK = ".lock"
_MANIFEST = "manifest.json"
_SPARE_BYTES = 2**26  # of a disk, for checkpoints and models


class WorkFolder:
    """Arrays in files of a folder; the system reads and forgets them as memory allows.

    Parameters
    ----------
    path : Path
        A folder that exists.
    keeps : bool, default False
        Whether finished passes stay, for a fit that resumes.
    prefix : str, default ""
        Of the names of all files.

    Examples
    --------
    >>> with work_folder(None) as folder:
    ...     array = folder.empty("numbers", (2, 3))
    ...     array[:] = 1.0
    ...     float(array.sum())
    6.0
    """

    def __init__(self, path: Path, keeps: bool = False, prefix: str = "") -> None:
        self.path = path
        self.keeps = keeps
        self.prefix = prefix
        self.key = ""
        self.is_needed = False  # by a fit that goes on later
        self.is_resumed = False  # all passes were done before

    def empty(
        self, name: str, shape: tuple[int, ...], dtype: Any = np.float32, *, is_random: bool = False
    ) -> NDArray[Any]:
        """A new array in a file, whose place on the disk is reserved.

        Parameters
        ----------
        name : str
        shape : tuple of int
        dtype : dtype, default float32
        is_random : bool, default False
            Whether it will be read in random order, so that reading ahead is of no use.
        """
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        self.remove(name)  # not truncated: an array that maps the old file goes on
        with open(self._file(name), "x+b") as file:
            if n_bytes and hasattr(os, "posix_fallocate"):
                # A disk that fills up while a map is written would end the process.
                self._reserve(file.fileno(), n_bytes)
            file.truncate(n_bytes)
            return _map(file.fileno(), shape, dtype, is_random)

    def keep(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """The same array in a file."""
        array = self.empty(name, values.shape, values.dtype)
        array[...] = values
        return array

    def remove(self, name: str) -> None:
        """Remove an array; what still maps it may go on."""
        self._file(name).unlink(missing_ok=True)

    def check_space(self, n_bytes: int) -> None:
        """Raise `InvalidOptionError` if so many bytes do not fit onto the disk."""
        free = shutil.disk_usage(self.path).free
        if n_bytes + _SPARE_BYTES > free:
            raise self._too_small(n_bytes + _SPARE_BYTES, free)

    def begin(self, key: str) -> None:
        """Forget the passes of a fit with other data or options, of which `key` is a hash."""
        self.key = key
        if self.keeps and self._manifest().get("key") != key:
            self.forget()

    def forget(self) -> None:
        """Remove all files; what still maps them may go on."""
        for file in self.path.iterdir():
            file.unlink()

    def finish(self, name: str, facts: Mapping[str, Any]) -> None:
        """Note that a pass is done, with all that is to be known of its arrays."""
        if self.keeps:
            for file in self.path.glob("*.bin"):  # a power cut must not leave only the manifest
                with open(file, "r+b") as written:
                    os.fsync(written.fileno())
            entries = self._manifest() | {"key": self.key, name: dict(facts)}
            atomic_write(self.path / _MANIFEST, json.dumps(entries).encode())

    def finished(self, name: str) -> dict[str, Any] | None:
        """What `finish` noted, or None if this pass was not done."""
        return self._manifest().get(name) if self.keeps else None

    def reopen(
        self, name: str, shape: tuple[int, ...], dtype: Any = np.float32, *, is_random: bool = False
    ) -> NDArray[Any]:
        """An array of a pass that is finished."""
        with open(self._file(name), "r+b") as file:
            return _map(file.fileno(), shape, dtype, is_random)

    def _manifest(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            entries: dict[str, Any] = json.loads((self.path / _MANIFEST).read_bytes())
            return entries
        return {}

    def _file(self, name: str) -> Path:
        return self.path / f"{self.prefix}{name}.bin"

    def _reserve(self, descriptor: int, n_bytes: int) -> None:
        try:
            os.posix_fallocate(descriptor, 0, n_bytes)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                free = shutil.disk_usage(self.path).free
                raise self._too_small(n_bytes, free) from error
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise

    def _too_small(self, n_bytes: int, free: int) -> InvalidOptionError:
        return InvalidOptionError(
            f"work_dir must be on a disk with room for the encoded rows, {gigabytes(n_bytes)}, "
            f"but {self.path.parent} has {gigabytes(free)}. Set work_dir to a folder on a larger "
            "disk, or free space."
        )


def gigabytes(n_bytes: int) -> str:
    """Bytes in words.

    Examples
    --------
    >>> gigabytes(3_300_000_000), gigabytes(20_000_000)
    ('3.3 GB', '20 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 10**9 else f"{n_bytes / 1e6:,.0f} MB"


@contextmanager
def work_folder(place: str | Path | None) -> Iterator[WorkFolder]:
    """Make a folder that is removed at the end, however that comes.

    Folders of processes that were killed are removed first: each process holds a lock on its own.

    Parameters
    ----------
    place : str, Path or None
        Where to make it; None is the system's folder for temporary files.

    Raises
    ------
    InvalidOptionError
        If it cannot be made.
    """
    base = Path(tempfile.gettempdir() if place is None else place)
    try:
        base.mkdir(parents=True, exist_ok=True)
        remove_dead_folders(base)
        path, lock = _make_locked(base)
    except OSError as error:
        raise _cannot_write("work_dir", base, error) from error
    try:
        yield WorkFolder(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        lock.release()


@contextmanager
def kept_folder(place: str | Path | None, run: str | Path, resume: bool) -> Iterator[WorkFolder]:
    """A folder that a resumed run finds again: removed only after a block without an error.

    Parameters
    ----------
    place : str, Path or None
        Where to make it; None is the folder of the run.
    run : str or Path
        Folder of the run, which the caller has locked.
    resume : bool
        Whether to keep what an earlier run left.

    Raises
    ------
    InvalidOptionError
        If it cannot be made.
    """
    name = "encoded"
    if place is not None:
        name = f"tabnsm-{hashlib.sha256(str(Path(run).resolve()).encode()).hexdigest()[:16]}"
    base = Path(run if place is None else place)
    path = base / name
    if not resume:
        shutil.rmtree(path, ignore_errors=True)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        option = "checkpoint_dir" if place is None else "work_dir"
        raise _cannot_write(option, base, error) from error
    folder = WorkFolder(path, keeps=True)
    yield folder
    if not folder.is_needed:
        shutil.rmtree(path, ignore_errors=True)


def _cannot_write(option: str, base: Path, error: OSError) -> InvalidOptionError:
    return InvalidOptionError(
        f"{option} must be a folder that can be written, or a path where one can be made, got "
        f"{str(base)!r} ({error.strerror or error})."
    )


def remove_dead_folders(base: Path) -> None:
    """Remove work folders whose process is gone."""
    for path in base.glob(f"{_PREFIX}*"):
        lock = FileLock(path / _LOCK)
        with suppress(OSError, Timeout):
            lock.acquire(timeout=0)
            shutil.rmtree(path, ignore_errors=True)
            lock.release()


def _make_locked(base: Path) -> tuple[Path, FileLock]:
    while True:
        path = base / f"{_PREFIX}{secrets.token_hex(8)}"
        path.mkdir()
        lock = FileLock(path / _LOCK)
        with suppress(OSError, Timeout):
            lock.acquire(timeout=0)
            if (path / _LOCK).exists():  # else another process took it for a dead one
                return path, lock
            lock.release()


def _map(descriptor: int, shape: tuple[int, ...], dtype: Any, is_random: bool) -> NDArray[Any]:
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    if not n_bytes:
        return np.empty(shape, dtype)
    mapped = mmap.mmap(descriptor, n_bytes)
    if is_random and hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(mapped, dtype).reshape(shape)
