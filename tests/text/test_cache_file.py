from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm.text.cache import TextCache, cache_info, clear_cache
from tabnsm.text.cache_file import cache_path


def store(texts: list[str]) -> None:
    with TextCache("model", 4) as cache:
        cache.put(texts, np.ones((len(texts), 4), dtype=np.float32))


def test_info_and_clear():
    assert cache_info().n_entries == cache_info().n_bytes == clear_cache() == 0
    store(["a", "b"])
    info = cache_info()
    assert info.n_entries == 2
    assert info.n_bytes > 0
    assert info.path == cache_path()
    assert info.limit_bytes == 2048 * 2**20
    assert clear_cache() == 2
    assert cache_info().n_entries == 0


def test_clearing_a_damaged_file_removes_it():
    path = cache_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 500)
    assert clear_cache() == 0
    assert not path.exists()


def test_a_senseless_limit_is_refused(monkeypatch):
    for limit in ("much", "0", "-1", "nan"):
        monkeypatch.setenv("TABNSM_CACHE_LIMIT_MB", limit)
        with pytest.raises(
            InvalidOptionError, match="TABNSM_CACHE_LIMIT_MB must be a number above 0"
        ):
            cache_info()


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "tabnsm"),
        ("win32", "LOCALAPPDATA", "tabnsm"),
    ],
)
def test_the_users_cache_folder_is_the_default(tmp_path, monkeypatch, platform, variable, expected):
    monkeypatch.delenv("TABNSM_CACHE")
    monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setattr("tabnsm.text.cache_file.sys.platform", platform)
    assert cache_path().parent == tmp_path / expected


def test_the_cache_folder_of_macos(monkeypatch):
    monkeypatch.delenv("TABNSM_CACHE")
    monkeypatch.setattr("tabnsm.text.cache_file.sys.platform", "darwin")
    assert cache_path().parent == Path.home() / "Library" / "Caches" / "tabnsm"
