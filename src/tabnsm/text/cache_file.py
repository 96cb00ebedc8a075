"""The file behind the text cache: its place, its size limit and how it is opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from tabnsm.errors import InvalidOptionError

CACHE_FILE = "text.sqlite3"
_DEFAULT_LIMIT_MB = 2048.0
_BUSY_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS embeddings
    (key BLOB PRIMARY KEY, used INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS embeddings_used ON embeddings (used);
"""


def cache_path() -> Path:
    """Place of the cache: `TABNSM_CACHE`, else the user's cache folder.

    It may not exist yet.
    """
    chosen = os.environ.get("TABNSM_CACHE")
    if chosen:
        return Path(chosen).expanduser() / CACHE_FILE
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tabnsm" / CACHE_FILE


@contextlib.contextmanager
def connect(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a cache that exists, and close it at the end.

    It waits for other processes rather than failing.
    """
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS)
    try:
        yield connection
    finally:
        connection.close()


def open_cache_file(path: Path) -> sqlite3.Connection:
    """Open the cache, making it first where there is none.

    Raises `sqlite3.DatabaseError` if the file is damaged, or cannot be written.
    """
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS)
    try:
        # Freed pages can only be given back if this is set before the first table is made.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(_SCHEMA)
        connection.execute("SELECT key, used, value FROM embeddings LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def used_bytes(connection: sqlite3.Connection) -> int:
    """Size of what an open cache holds, pages that are free to be used again left out."""
    pages, free, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


def limit_bytes() -> int:
    """Size above which embeddings are removed: `TABNSM_CACHE_LIMIT_MB`, else 2 GB."""
    text = os.environ.get("TABNSM_CACHE_LIMIT_MB", "").strip()
    try:
        limit = float(text) if text else _DEFAULT_LIMIT_MB
    except ValueError:
        limit = -1.0
    if not limit > 0:
        raise InvalidOptionError(
            f"TABNSM_CACHE_LIMIT_MB must be a number above 0, got {text!r}. Unset it for "
            f"{_DEFAULT_LIMIT_MB:.0f} MB."
        )
    return int(limit * 2**20)


def side_files(path: Path) -> tuple[Path, Path]:
    """Files that SQLite keeps beside the cache while it is open."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")


def file_bytes(path: Path) -> int:
    """Size of the cache on disk."""
    return sum(part.stat().st_size for part in (path, *side_files(path)) if part.exists())
