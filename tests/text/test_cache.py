from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tabnsm.text
from tabnsm.errors import TabNSMWarning
from tabnsm.text.cache import TextCache, cache_info
from tabnsm.text.cache_file import cache_path

# Writes batches of ten and says when each is done. Empty packages stand in for the real ones, whose
# other imports (torch) would take longer than the test.
WRITER = """
import sys
import types
prefix, n, *folders = sys.argv[1:]
for name, folder in zip(("tabnsm", "tabnsm.text"), folders):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
import numpy as np
from tabnsm.text.cache import TextCache
with TextCache("model", 4) as cache:
    for batch in range(int(n)):
        texts = [f"{prefix} {batch} {k}" for k in range(10)]
        cache.put(texts, np.full((10, 4), batch, dtype=np.float32))
        print(batch, flush=True)
"""


def start_writer(prefix: str, n_batches: int) -> subprocess.Popen[str]:
    folders = [tabnsm.__path__[0], tabnsm.text.__path__[0]]
    command = [sys.executable, "-c", WRITER, prefix, str(n_batches), *folders]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def look_up(texts: list[str], fingerprint: str = "model") -> tuple[np.ndarray, np.ndarray]:
    out = np.full((len(texts), 4), np.nan, dtype=np.float32)
    with TextCache(fingerprint, 4) as cache:
        return cache.get(texts, out), out


def store(texts: list[str], value: float = 1.0) -> None:
    with TextCache("model", 4) as cache:
        cache.put(texts, np.full((len(texts), 4), value, dtype=np.float32))


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    finally:
        connection.close()


def test_what_is_stored_is_found_bit_by_bit():
    texts = [f"text {k}" for k in range(1500)] + ["\ud800 lone surrogate", ""]
    values = np.random.default_rng(0).normal(size=(len(texts), 4)).astype(np.float32)
    with TextCache("model", 4) as cache:
        cache.put(texts, values)
    found, out = look_up(texts)
    assert found.all()
    np.testing.assert_array_equal(out, values)
    found, _ = look_up(["new", *texts[:1]])
    assert found.tolist() == [False, True]
    assert not look_up(texts, "other model")[0].any()


def test_an_entry_of_the_wrong_length_is_not_used():
    store(["a"])
    with TextCache("model", 8) as cache:
        assert not cache.get(["a"], np.empty((1, 8), dtype=np.float32)).any()


@pytest.mark.slow
def test_kill_in_the_middle_keeps_finished_batches():
    for attempt in range(4):
        writer = start_writer(f"run {attempt}", 1_000_000)
        assert writer.stdout is not None
        for _ in range(5 + attempt):
            last = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        assert is_sound(cache_path())
        texts = [f"run {attempt} {batch} {k}" for batch in range(last + 1) for k in range(10)]
        found, out = look_up(texts)
        assert found.all()
        np.testing.assert_array_equal(out[:, 0], np.repeat(np.arange(last + 1), 10))


def test_two_processes_at_once():
    writers = [start_writer(name, 60) for name in ("left", "right")]
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    texts = [f"{name} {b} {k}" for name in ("left", "right") for b in range(60) for k in range(10)]
    assert look_up(texts)[0].all()
    assert is_sound(cache_path())


def test_the_least_recently_used_go_first(monkeypatch):
    monkeypatch.setenv("TABNSM_CACHE_LIMIT_MB", "0.25")
    old = [f"old {k}" for k in range(1000)]
    store(old)
    connection = sqlite3.connect(cache_path())
    with connection:
        connection.execute("UPDATE embeddings SET used = used - 100000 + rowid")
    connection.close()
    assert look_up(old[:50])[0].all()  # using them makes them young again
    for batch in range(10):
        store([f"new {batch} {k}" for k in range(300)])
    assert cache_info().n_entries < 4000
    connection = sqlite3.connect(cache_path())
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    connection.close()
    assert pages * size <= 1.1 * 0.25 * 2**20
    assert look_up([f"new 9 {k}" for k in range(300)])[0].all()
    assert look_up(old[:50])[0].sum() >= look_up(old[50:])[0].sum()


def test_eviction_order(monkeypatch):
    store([f"text {k}" for k in range(3000)])
    connection = sqlite3.connect(cache_path())
    with connection:
        connection.execute("UPDATE embeddings SET used = rowid")
    connection.close()
    monkeypatch.setenv("TABNSM_CACHE_LIMIT_MB", "0.2")
    store(["one more"])
    found, _ = look_up([f"text {k}" for k in range(3000)])
    n_gone = int((~found).sum())
    assert 0 < n_gone < 3000
    assert not found[:n_gone].any()
    assert look_up(["one more"])[0].all()


def test_a_damaged_file_is_set_aside():
    path = cache_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, but long enough to be taken for one" * 100)
    assert cache_info().n_entries == 0
    with pytest.warns(TabNSMWarning, match="was damaged .* set aside as"):
        store(["a"])
    assert look_up(["a"])[0].all()
    assert len(list(path.parent.glob("*.damaged-*"))) == 1


def test_damage_inside_the_file_is_not_fatal():
    store([f"text {k}" for k in range(2000)])
    path = cache_path()
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.warns(TabNSMWarning, match="was damaged"):
        assert not look_up([f"text {k}" for k in range(2000)])[0].all()
    store(["a"])
    assert look_up(["a"])[0].all()


def test_a_place_that_cannot_be_written_means_no_cache(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("a file, not a folder")
    monkeypatch.setenv("TABNSM_CACHE", str(blocked / "below"))
    with pytest.warns(TabNSMWarning, match="cannot be used .* Set TABNSM_CACHE"):
        store(["a"])
    with pytest.warns(TabNSMWarning, match="cannot be used"):
        assert not look_up(["a"])[0].any()
