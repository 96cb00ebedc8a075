"""The file of a study: many processes write to it, and any of them may be killed at any time.

Storage and repeats are Optuna's. Its heartbeat is not used: only its databases have one, a killed
trial would be repeated no sooner than a grace period later, and never if it was killed before the
first beat; a machine that was suspended would run trials twice. Locks of the kernel tell at once.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm.atomic import is_at
from tabnsm.errors import InvalidOptionError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

# Bytes of the lock file: one is held to write, one to choose a trial, and one, far out and drawn
# at random, as long as a process lives. The kernel frees them all when a process dies.
WRITE, CLAIM, FIRST_WORKER = 0, 1, 2
FIRST_BYTES = b'{"op_code":'


class FileLocks:
    """Locks on bytes of a file beside the study, which the kernel frees when a process dies.

    One search per process and file: the locks belong to the process.

    Parameters
    ----------
    path : Path
        Of the study. Beside it stands a ".lock" as long as a process is at work.

    Attributes
    ----------
    worker : int
        This process's byte of the lock file.
    """

    def __init__(self, path: Path) -> None:
        self.worker = FIRST_WORKER + secrets.randbits(60)
        self._path = f"{path}.lock"
        self._file = self._open()

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Only one process at a time looks for its next trial."""
        self.take(CLAIM)
        try:
            yield
        finally:
            self.free(CLAIM)

    def is_alive(self, worker: int | None) -> bool:
        """Whether the process that held this byte still does."""
        if worker is None:
            return False
        if worker == self.worker:
            return True
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, worker)
        except OSError:
            return True
        self.free(worker)
        return False

    def take(self, byte: int) -> None:
        """Wait for a byte."""
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, byte)

    def free(self, byte: int) -> None:
        """Let another process have it."""
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)

    def close(self) -> None:
        """Remove the lock file, also a killed process's, unless another process is at work."""
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Ours is empty: a file of the user's by that name is not.
            if os.fstat(self._file).st_size == 0:
                os.unlink(self._path)
        os.close(self._file)  # frees the locks, too

    def _open(self) -> int:
        """Open it and take this process's byte; again if another removed it in between."""
        while True:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.lockf(handle, fcntl.LOCK_EX, 1, self.worker)
            if is_at(handle, self._path):
                return handle
            os.close(handle)


class StudyFile:
    """Optuna's journal, with locks that a killed process cannot leave behind.

    Parameters
    ----------
    path : str or Path
        The journal; made if it is not there.

    Attributes
    ----------
    storage : optuna.storages.JournalStorage
    worker : int
        This process's byte of the lock file.
    name : str
        The path.
    """

    def __init__(self, path: str | Path) -> None:
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        self.path = Path(path)
        self.name = str(path)
        check_journal(self.path)
        self._locks = FileLocks(self.path)
        self.worker, self.claim, self.is_alive = (
            self._locks.worker,
            self._locks.claim,
            self._locks.is_alive,
        )
        lock: Any = self  # Optuna's class for locks is private
        try:
            backend = JournalFileBackend(str(self.path), lock_obj=lock)
            self.storage: BaseStorage = JournalStorage(backend)
        except BaseException:
            self._locks.close()
            raise

    def acquire(self) -> bool:
        """Lock the journal for a write, as Optuna asks, and repair what a killed writer left."""
        self._locks.take(WRITE)
        drop_torn_line(self.path)
        return True

    def release(self) -> None:
        """Unlock the journal after a write, as Optuna asks."""
        self._locks.free(WRITE)

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._locks.close()


def check_journal(path: Path) -> None:
    """Refuse, before anything is written, a path that is no study and cannot become one."""
    check_locks(path)
    if not path.exists():
        return
    with open(path, "rb") as file:
        start = file.read(len(FIRST_BYTES))
    if not FIRST_BYTES.startswith(start):  # a shorter one may be torn off
        raise InvalidOptionError(
            f"storage must be a new file or the journal of a study, but {path} is neither. "
            "Choose another name."
        )


def check_locks(path: Path) -> None:
    """Refuse a path whose neighbour cannot be locked."""
    if fcntl is None:
        raise InvalidOptionError(
            f"storage needs file locks that this system does not have, got {str(path)!r}. "
            "Leave it out, or use a POSIX system."
        )
    if path.is_dir() or not path.parent.is_dir():
        found = "is a folder" if path.is_dir() else f"lies in {path.parent}, which does not exist"
        raise InvalidOptionError(f"storage must be a file in a folder, but {path} {found}.")


def drop_torn_line(path: Path) -> None:
    """Cut off what follows the last line break: the start of a line whose writer was killed.

    Optuna's readers pass over it while it is the last, but the next line would be appended to it
    and make the journal unreadable.
    """
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end:
            start = max(0, end - 4096)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)
