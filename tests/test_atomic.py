"""Files are whole or not there; only what dead processes left is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tabnsm.atomic import atomic_write, remove_leftovers, replacement

HOLD = """
import sys
from tabnsm.atomic import replacement
with replacement(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print(temporary, flush=True)
    sys.stdin.read()
"""


def start(path: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process in the middle of writing `path`, and its temporary file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for content in (b"one\r\n", b"", b"two"):
        atomic_write(path, content)
        assert path.read_bytes() == content
        assert os.listdir(tmp_path) == ["a.bin"]


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail() -> None:
        with replacement(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"that exists, got .*gone.*Make its folder"):
        atomic_write(tmp_path / "gone" / "model.safetensors", b"")


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "a[1].txt"
    process, temporary = start(path)
    atomic_write(path, b"meanwhile")
    assert temporary.read_text() == "half"  # its process is alive
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert temporary.exists()
    atomic_write(path, b"after")
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == b"after"


def test_two_processes_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    (first, one), (second, two) = start(path), start(path)
    assert one.exists()
    assert two.exists()
    for process in (first, second):
        process.communicate("")
        assert process.returncode == 0
        assert path.read_text() == "half"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    """Each looks for leftovers while the others make their temporary files."""
    path, errors = tmp_path / "a.txt", []

    def write(k: int) -> None:
        try:
            for _ in range(20):
                atomic_write(path, b"%d" % k * 1000)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(path.read_bytes()) == 1000
    assert os.listdir(tmp_path) == ["a.txt"]


def test_only_leftovers_of_the_same_file_are_removed(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    own = {f".a.csv.{token}.tmp", ".a.csv.01234567.tmp"}  # the short one is of earlier versions
    other = {
        f".b.csv.{token}.tmp",
        f".a.csv.gz.{token}.tmp",
        f"a.csv.{token}.tmp",
        ".a.csv.notes.tmp",
        ".axcsv.01234567.tmp",
        f".a.csv.{token}.tmp.keep",
    }
    for name in own | other:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a.csv")
    assert set(os.listdir(tmp_path)) == other
    remove_leftovers(tmp_path / "no" / "folder")
