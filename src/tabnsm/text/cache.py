"""Embeddings on disk: one SQLite file that survives crashes, other processes and damage."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import warn
from tabnsm.text.cache_file import (
    CACHE_FILE,
    cache_path,
    connect,
    file_bytes,
    limit_bytes,
    open_cache_file,
    side_files,
    used_bytes,
)

# Below SQLite's oldest limit on the variables of one statement.
_KEYS_PER_QUERY = 500
# Reading must not rewrite the file each time, so a use is noted once an hour.
_USE_GRAIN = 3600
_EVICT_TO = 0.9


@dataclass(frozen=True)
class CacheInfo:
    """State of the cache on disk.

    Parameters
    ----------
    path : Path
        The file.
    n_entries : int
        Number of embeddings in it.
    n_bytes : int
        Its size.
    limit_bytes : int
        Size above which the least recently used embeddings are removed.
    """

    path: Path
    n_entries: int
    n_bytes: int
    limit_bytes: int


def cache_info() -> CacheInfo:
    """How much the cache holds.

    Returns
    -------
    CacheInfo
        Place, entries and size; zeros if there is none yet.
    """
    path = cache_path()
    if not path.exists():
        return CacheInfo(path, 0, 0, limit_bytes())
    n_entries = 0
    with contextlib.suppress(sqlite3.Error), connect(path) as connection:
        n_entries = int(connection.execute("SELECT count(*) FROM embeddings").fetchone()[0])
    return CacheInfo(path, n_entries, file_bytes(path), limit_bytes())


def clear_cache() -> int:
    """Remove all embeddings, also while another process uses the cache.

    Returns
    -------
    int
        Number of embeddings removed.
    """
    path = cache_path()
    if not path.exists():
        return 0
    try:
        with connect(path) as connection:
            removed = connection.execute("DELETE FROM embeddings").rowcount
            connection.commit()
            connection.execute("VACUUM")
            return int(removed)
    except sqlite3.DatabaseError:
        for part in (path, *side_files(path)):
            part.unlink(missing_ok=True)
        return 0


class TextCache:
    """Embeddings of one encoder, by content; any trouble with the disk ends in "not cached"."""

    def __init__(self, fingerprint: str, d_text: int) -> None:
        self._prefix = hashlib.sha256(fingerprint.encode())
        self._d_text = d_text
        self._path = cache_path()
        self._limit = limit_bytes()
        self._connection = self._open()

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def __enter__(self) -> TextCache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get(self, texts: Sequence[str], out: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Fill `out` with the embeddings that are known; which of them were found."""
        found = np.zeros(len(texts), dtype=bool)
        if self._connection is None:
            return found
        position_of = {self._key(text): position for position, text in enumerate(texts)}
        keys = list(position_of)
        now = int(time.time())
        try:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                part = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                stale = []
                query = f"SELECT key, used, value FROM embeddings WHERE key IN ({marks})"
                for key, used, value in self._connection.execute(query, part):
                    if len(value) == 4 * self._d_text:
                        position = position_of[key]
                        out[position] = np.frombuffer(value, dtype="<f4")
                        found[position] = True
                        if now - used > _USE_GRAIN:
                            stale.append((now, key))
                if stale:
                    with self._connection:
                        self._connection.executemany(
                            "UPDATE embeddings SET used = ? WHERE key = ?", stale
                        )
        except sqlite3.DatabaseError as error:
            self._give_up(error)
        return found

    def put(self, texts: Sequence[str], embeddings: NDArray[np.float32]) -> None:
        """Store embeddings in one short transaction, so that finished work is kept."""
        if self._connection is None:
            return
        now = int(time.time())
        rows = [
            (self._key(text), now, row.astype("<f4").tobytes())
            for text, row in zip(texts, embeddings, strict=True)
        ]
        try:
            with self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", rows
                )
            self._evict()
        except sqlite3.DatabaseError as error:
            self._give_up(error)

    def _key(self, text: str) -> bytes:
        digest = self._prefix.copy()
        # A lone surrogate is no valid text, but must not stop a fit.
        digest.update(text.encode("utf-8", errors="surrogatepass"))
        return digest.digest()

    def _evict(self) -> None:
        if self._connection is None:
            return
        size = used_bytes(self._connection)
        if size <= self._limit:
            return
        with self._connection:
            count = self._connection.execute("SELECT count(*) FROM embeddings").fetchone()[0]
            surplus = int(np.ceil(count * (1 - _EVICT_TO * self._limit / size)))
            self._connection.execute(
                "DELETE FROM embeddings WHERE key IN "
                "(SELECT key FROM embeddings ORDER BY used, rowid LIMIT ?)",
                (surplus,),
            )
        self._connection.execute("PRAGMA incremental_vacuum").fetchall()

    def _open(self) -> sqlite3.Connection | None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return open_cache_file(self._path)
        except sqlite3.OperationalError as error:
            self._warn_unusable(error)
        except sqlite3.DatabaseError as error:
            return self._start_over(error)
        except OSError as error:
            self._warn_unusable(error)
        return None

    def _start_over(self, error: Exception) -> sqlite3.Connection | None:
        aside = self._path.with_name(f"{CACHE_FILE}.damaged-{os.getpid()}-{time.time_ns()}")
        try:
            self._path.replace(aside)
            for part in side_files(self._path):
                part.unlink(missing_ok=True)
            connection = open_cache_file(self._path)
        except (OSError, sqlite3.DatabaseError) as second_error:
            self._warn_unusable(second_error)
            return None
        warn(
            f"The text cache was damaged ({error}) and was set aside as {aside}. "
            "A new one was started; the old file can be deleted."
        )
        return connection

    def _give_up(self, error: sqlite3.DatabaseError) -> None:
        self.close()
        if isinstance(error, sqlite3.OperationalError):
            self._warn_unusable(error)
        else:
            self._connection = self._start_over(error)

    def _warn_unusable(self, error: Exception) -> None:
        warn(
            f"The text cache at {self._path} cannot be used ({error}), so texts are encoded "
            "again each time. Set TABNSM_CACHE to a folder that can be written."
        )
