from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.tests.datasets.server import Site, serve
from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets.download import DownloadError, download_file

BODY = bytes(range(256)) * 2000  # several chunks
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def site() -> Iterator[Site]:
    with serve(Site({"/file": BODY})) as running:
        yield running


def left_behind(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def get(site: Site, folder: Path, **options: object) -> Path:
    options = {"sha256": SHA256, "pause": 0.0} | options
    return download_file(f"{site.address}/file", folder / "file", **options).path  # type: ignore[arg-type]


def test_a_file_comes_whole(site: Site, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    fetched = download_file(
        f"{site.address}/file",
        tmp_path / "new" / "file",
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert fetched.path.read_bytes() == BODY
    assert (fetched.sha256, fetched.n_bytes) == (SHA256, len(BODY))
    assert seen[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert left_behind(tmp_path / "new") == ["file"]


def test_passing_refusals_are_tried_again(site: Site, tmp_path: Path) -> None:
    site.faults = [500, 503, 429]
    assert get(site, tmp_path).read_bytes() == BODY
    assert len(site.requests) == 4


@pytest.mark.parametrize("status", [403, 404, 410])
def test_lasting_refusals_are_not(site: Site, tmp_path: Path, status: int) -> None:
    site.faults = [status]
    with pytest.raises(DownloadError, match=f"HTTP {status}"):
        get(site, tmp_path)
    assert len(site.requests) == 1
    assert left_behind(tmp_path) == []


def test_a_cut_connection_is_continued_where_it_was_cut(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), ("cut", 50_000)]
    assert get(site, tmp_path).read_bytes() == BODY
    assert [asked for _, asked in site.requests] == [None, "bytes=100000-", "bytes=150000-"]
    assert left_behind(tmp_path) == ["file"]


def test_a_later_call_continues_an_earlier_one(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), 500, 500]
    with pytest.raises(DownloadError, match="100,000 bytes are kept"):
        get(site, tmp_path, tries=2)
    assert not (tmp_path / "file").exists()
    site.faults = []
    assert get(site, tmp_path).read_bytes() == BODY
    assert site.requests[-1] == ("/file", "bytes=100000-")


def test_a_download_survives_many_interruptions(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 40_000)] * 10
    assert get(site, tmp_path, tries=2).read_bytes() == BODY


def test_a_server_without_ranges_starts_again(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    site.faults = [("cut", 100_000)]
    assert get(site, tmp_path).read_bytes() == BODY


def test_without_a_version_nothing_is_continued(site: Site, tmp_path: Path) -> None:
    site.tag = None
    site.faults = [("cut", 100_000)]
    assert get(site, tmp_path).read_bytes() == BODY
    assert [asked for _, asked in site.requests] == [None, None]


def test_a_file_that_changed_meanwhile_starts_again(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), 500]
    with pytest.raises(DownloadError):
        get(site, tmp_path, tries=2)
    other = BODY[::-1]
    site.files["/file"], site.tag = other, '"v2"'
    path = get(site, tmp_path, sha256=hashlib.sha256(other).hexdigest())
    assert path.read_bytes() == other


def test_bytes_that_were_all_there_need_no_more(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), 500]
    with pytest.raises(DownloadError):
        get(site, tmp_path, tries=2)
    (tmp_path / ".file.part").write_bytes(BODY)
    assert get(site, tmp_path).read_bytes() == BODY


def test_more_bytes_than_there_are_start_again(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), 500]
    with pytest.raises(DownloadError):
        get(site, tmp_path, tries=2)
    (tmp_path / ".file.part").write_bytes(BODY + b"more")
    assert get(site, tmp_path).read_bytes() == BODY


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_wrong_content_never_takes_the_files_place(site: Site, tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_bytes(b"the old one")
    wrong = hashlib.new(kind, b"other").hexdigest()
    with pytest.raises(InvalidDataError, match=f"checksum {wrong}"):
        get(site, tmp_path, **{"sha256": None} | {kind: wrong})
    assert (tmp_path / "file").read_bytes() == b"the old one"
    assert left_behind(tmp_path) == ["file"]
    assert len(site.requests) == 2


def test_a_corrupt_part_is_downloaded_again(site: Site, tmp_path: Path) -> None:
    site.faults = [("cut", 100_000), 500]
    with pytest.raises(DownloadError):
        get(site, tmp_path, tries=2)
    (tmp_path / ".file.part").write_bytes(b"x" * 100_000)
    assert get(site, tmp_path).read_bytes() == BODY


def test_nobody_there(tmp_path: Path) -> None:
    with serve(Site()) as gone:
        address = gone.address
    with pytest.raises(DownloadError, match="in 2 tries"):
        download_file(f"{address}/file", tmp_path / "file", tries=2, pause=0.0)


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="http"):
        download_file("file:///etc/hostname", tmp_path / "file")
