"""The study's file: torn lines, dead processes, foreign files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tabnsm import InvalidOptionError
from tabnsm.tuning import Real, search
from tabnsm.tuning.journal import StudyFile, check_journal, drop_torn_line

HOLD = """
import sys
from tabnsm.tuning.journal import StudyFile
with StudyFile(sys.argv[1]) as file:
    print(file.worker, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kept", ["", "one\n", "one\ntwo\n"])
@pytest.mark.parametrize("torn", ["", "x", "x" * 10_000])
def test_only_a_torn_line_is_dropped(tmp_path: Path, kept: str, torn: str) -> None:
    path = tmp_path / "j"
    path.write_text(kept + torn)
    drop_torn_line(path)
    assert path.read_text() == kept


def test_a_study_survives_a_torn_line(tmp_path: Path) -> None:
    """Optuna alone would glue the next line to it, and then refuse the file for good."""
    path = tmp_path / "study.journal"
    space = {"x": Real(0, 1)}
    search(space, lambda options, report: options["x"], 3, storage=path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    for n_trials in (4, 5):
        result = search(space, lambda options, report: options["x"], n_trials, storage=path)
    complete = [trial for trial in result.trials if trial.state == "complete"]
    assert len(complete) == 5
    for line in path.read_bytes().splitlines():
        json.loads(line)


@pytest.mark.slow
def test_a_worker_is_alive_until_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    with StudyFile(path) as file:
        assert file.is_alive(worker)
        assert file.is_alive(worker)  # asking does not take the lock away
        assert file.is_alive(file.worker)
        assert not file.is_alive(file.worker + 1)
        assert not file.is_alive(None)
        process.kill()
        process.communicate()
        assert not file.is_alive(worker)


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "no line break", '{"a": 1}\n', "\x00\x01"])
def test_a_file_that_is_no_study_is_not_changed(tmp_path: Path, content: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    with pytest.raises(InvalidOptionError, match="must be a new file or the journal of a study"):
        StudyFile(path)
    assert path.read_text() == content
    assert list(tmp_path.iterdir()) == [path]


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="is a folder"):
        check_journal(tmp_path)
    with pytest.raises(InvalidOptionError, match="which does not exist"):
        check_journal(tmp_path / "no" / "study.journal")
    check_journal(tmp_path / "new.journal")
    (tmp_path / "empty").touch()
    check_journal(tmp_path / "empty")


@pytest.mark.slow
def test_the_last_process_removes_the_lock_file(tmp_path: Path) -> None:
    path, lock = tmp_path / "study.journal", tmp_path / "study.journal.lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    with StudyFile(path):
        pass
    assert lock.exists()  # the other is at work
    with StudyFile(path) as file:
        assert file.is_alive(worker)
        process.kill()
        process.communicate()
        assert lock.exists()
    assert not lock.exists()


@pytest.mark.slow
def test_processes_that_come_and_go_share_one_lock_file(tmp_path: Path) -> None:
    """While one removes the lock file another may just have opened it."""
    code = """
import sys
from tabnsm.tuning.journal import StudyFile
for _ in range(200):
    with StudyFile(sys.argv[1]) as file, file.claim():
        count = int(open(sys.argv[2]).read() or 0)
        open(sys.argv[2], "w").write(str(count + 1))
"""
    counter = tmp_path / "count"
    counter.touch()
    command = [sys.executable, "-c", code, str(tmp_path / "study.journal"), str(counter)]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert counter.read_text() == "600"
    assert not (tmp_path / "study.journal.lock").exists()


def test_a_users_file_by_the_lock_files_name_stays(tmp_path: Path) -> None:
    lock = tmp_path / "study.journal.lock"
    lock.write_text("mine")
    with StudyFile(tmp_path / "study.journal"):
        pass
    assert lock.read_text() == "mine"


def test_a_journal_that_cannot_be_read_leaves_no_lock_file(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"
    path.write_bytes(b'{"op_code":0}\nnonsense\n{"op_code":0}\n')
    with pytest.raises((KeyError, ValueError)):
        StudyFile(path)
    assert [p.name for p in tmp_path.iterdir()] == ["study.journal"]
