"""Files that appear whole or not at all: written to a temporary neighbour, then renamed."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends


def atomic_write(path: str | Path, content: bytes) -> None:
    """Write a whole file or nothing."""
    with replacement(path) as temporary, open(temporary, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def replacement(path: str | Path) -> Iterator[Path]:
    """Give a temporary neighbour of a file, which takes its place at the end of the block.

    After an error in the block the temporary file is removed and `path` is as it was. A killed
    process leaves its temporary file behind; the next one that writes `path` removes it. It is
    empty, in the same folder, and must be closed when the block ends.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"A file must be written to a folder that exists, got {path}. Make its folder first."
        )
    remove_leftovers(path)
    temporary, handle = _make_temporary(path)
    try:
        yield temporary
        if sys.platform == "win32":  # which renames no open file
            os.close(handle)
            handle = -1
        os.replace(temporary, path)
    finally:
        if handle >= 0:
            os.close(handle)
        temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` whose process was killed.

    Each writer holds a lock on its temporary file, which the kernel frees when it dies, so that the
    file of a process that is still writing stays.
    """
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9a-f]{{8}}|[0-9a-f]{{16}})\.tmp")
    with suppress(OSError), os.scandir(path.parent) as entries:
        leftovers = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for leftover in leftovers:
            with suppress(OSError):
                _remove_if_free(leftover)


def _make_temporary(path: Path) -> tuple[Path, int]:
    """Create a locked file; a name that is looked for before it is locked may be removed."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        # Windows removes no open file; a file system without locks keeps leftovers.
        if sys.platform != "win32":
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
        if is_at(handle, temporary):
            return temporary, handle
        os.close(handle)


def _remove_if_free(temporary: str) -> None:
    if sys.platform == "win32":
        os.unlink(temporary)
    else:
        handle = os.open(temporary, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(temporary)
        finally:
            os.close(handle)


def is_at(handle: int, path: str | Path) -> bool:
    """Whether an open file is still the one that has this path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
