"""Folders for large arrays are removed, also those of processes that were killed."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tabnsm import work_folder as module
from tabnsm.errors import InvalidOptionError
from tabnsm.work_folder import WorkFolder, kept_folder, work_folder


def test_arrays_are_files_that_hold_what_was_written(tmp_path):
    with work_folder(tmp_path) as folder:
        first = folder.empty("a", (3, 2))
        first[:] = 7.0
        second = folder.empty("a", (3, 2))  # the same name: the first array goes on
        second[:] = 1.0
        assert (first == 7.0).all()
        assert (folder.reopen("a", (3, 2)) == 1.0).all()
        assert folder.keep("b", np.arange(3)).tolist() == [0, 1, 2]
        assert folder.empty("none", (0, 4)).shape == (0, 4)
    assert not list(tmp_path.iterdir())


def test_the_folder_goes_after_an_error(tmp_path):
    def work():
        with work_folder(tmp_path) as folder:
            folder.empty("a", (3, 2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert not list(tmp_path.iterdir())


def test_folders_of_killed_processes_go_and_those_of_others_stay(tmp_path):
    code = (
        "import os, sys, signal\n"
        "from tabnsm.work_folder import work_folder\n"
        "with work_folder(sys.argv[1]) as folder:\n"
        "    folder.empty('a', (10,))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (dead,) = tmp_path.iterdir()
    with work_folder(tmp_path) as first:
        assert not dead.exists()
        with work_folder(tmp_path):
            assert first.path.exists()


def test_a_disk_that_is_too_small(tmp_path, monkeypatch):
    folder = WorkFolder(tmp_path)
    with pytest.raises(InvalidOptionError, match="work_dir must be on a disk with room"):
        folder.check_space(10**18)

    def is_full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "posix_fallocate", is_full)
    with pytest.raises(InvalidOptionError, match="work_dir must be on a disk with room"):
        folder.empty("a", (3, 2))


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidOptionError, match="work_dir must be a folder"):  # noqa: SIM117
        with work_folder(tmp_path / "file"):
            pass
    with pytest.raises(InvalidOptionError, match="work_dir must be a folder"):  # noqa: SIM117
        with kept_folder(tmp_path / "file", tmp_path / "run", False):
            pass
    with pytest.raises(InvalidOptionError, match="checkpoint_dir must be a folder"):  # noqa: SIM117
        with kept_folder(None, tmp_path / "file", False):
            pass


def test_a_kept_folder_remembers_passes_of_the_same_data_alone(tmp_path):
    found = []

    def work(key, resume):
        with kept_folder(None, tmp_path, resume) as folder:
            folder.begin(key)
            found.append(folder.finished("columns"))
            folder.finish("columns", {"n": 3})
            raise RuntimeError

    for key, resume in [("x", True), ("x", True), ("y", True), ("y", False)]:
        with pytest.raises(RuntimeError):
            work(key, resume)
    assert found == [None, {"n": 3}, None, None]
    with kept_folder(None, tmp_path, True) as folder:
        folder.is_needed = True
    assert os.listdir(tmp_path) == ["encoded"]
    with kept_folder(None, tmp_path, True):
        pass
    assert not os.listdir(tmp_path)
