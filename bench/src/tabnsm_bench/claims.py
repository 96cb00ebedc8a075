"""Claims on work that several processes share: one holder at a time, freed by its death."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from types import TracebackType


class Claim:
    """A locked file beside the work.

    The operating system holds the lock for as long as the process lives, so the claim of a
    process that was killed can be taken at once, whatever its file says, and a process number
    that was given out again cannot mislead anyone. The content is for people.

    Parameters
    ----------
    path : Path
        The claim's file.
    handle : int
        Its open, locked descriptor.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = Claim.acquire(Path(folder, "run.claim"))
    ...     second = Claim.acquire(Path(folder, "run.claim"))
    ...     first.release()
    ...     third = Claim.acquire(Path(folder, "run.claim"))
    ...     third.release()
    >>> second is None, third is None
    (True, False)
    """

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self._handle = handle

    @classmethod
    def acquire(cls, path: Path) -> Claim | None:
        """Take the claim, unless a running process has it.

        Parameters
        ----------
        path : Path
            The claim's file; its folder exists.

        Returns
        -------
        Claim or None
            None if it is taken.
        """
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            if not _lock(handle):
                os.close(handle)
                return None
            # The last holder may have removed the file between our opening and our locking.
            if _is_at(path, handle):
                break
            os.close(handle)
        note = {"pid": os.getpid(), "host": socket.gethostname()}
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(note).encode())
        return cls(path, handle)

    def release(self) -> None:
        """Give the claim up and remove its file."""
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(self._handle)
            self.path.unlink(missing_ok=True)
        else:
            self.path.unlink(missing_ok=True)
            os.close(self._handle)

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def _lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
