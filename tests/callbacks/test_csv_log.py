from __future__ import annotations

import csv
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tabnsm import InvalidDataError, InvalidOptionError, TabNSMRegressor, TabNSMWarning
from tabnsm.callbacks import CSVLog
from tabnsm.callbacks.csv_log import COLUMNS
from tabnsm.training.history import EpochRecord, History


def history(n_epochs: int) -> History:
    epochs = [
        EpochRecord(k, 0.5, 2.0, 1e-3, 0.1 * k, False, 1.5, 2.0) for k in range(1, n_epochs + 1)
    ]
    return History(epochs, best_epoch=1)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def epochs(path: Path) -> list[tuple[int, int]]:
    return [(int(row["network"]), int(row["epoch"])) for row in read(path)]


def test_a_fit_is_written_as_its_history_has_it(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = TabNSMRegressor(preset="fast", max_epochs=2, n_ensemble=2, n_jobs=1, random_state=0)
    path = tmp_path / "epochs.csv"
    model.fit(X, X[:, 0] * X[:, 1], callbacks=[CSVLog(path)])
    found = read(path)
    expected = model.training_history().to_dict("records")
    assert len(found) == 4
    for line, row in zip(found, expected, strict=True):
        assert tuple(line) == COLUMNS
        assert all(line[name] == str(row[name]) for name in COLUMNS)


def test_each_fit_begins_a_new_file_unless_it_appends(tmp_path: Path) -> None:
    path = tmp_path / "epochs.csv"
    log = CSVLog(path)
    for _ in range(2):
        log.on_epoch(1, history(1))
        log.on_epoch(1, history(2))
        log.on_end(None)
        assert epochs(path) == [(1, 1), (1, 2)]


def test_appending_writes_each_epoch_once(tmp_path: Path) -> None:
    path = tmp_path / "epochs.csv"
    first = CSVLog(path)
    first.on_epoch(1, history(1))
    with path.open("a") as file:
        file.write("1,2,0.5,2.")  # another program cut the line
    second = CSVLog(path, append=True)
    second.on_epoch(2, history(1))
    second.on_epoch(1, history(3))  # the second epoch was never written
    second.on_epoch(1, history(3))
    assert epochs(path) == [(1, 1), (2, 1), (1, 2), (1, 3)]
    assert len({len(line.split(",")) for line in path.read_text().splitlines()}) == 1


def test_another_file_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("price\n1\n")
    with pytest.raises(InvalidOptionError, match="must be a file of CSVLog to append to"):
        CSVLog(path, append=True).on_epoch(1, history(1))
    assert path.read_text() == "price\n1\n"


def test_a_full_disk_ends_no_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "epochs.csv"
    log = CSVLog(path)
    log.on_epoch(1, history(1))
    write = os.write

    def half(file: int, content: bytes) -> int:
        return write(file, content[: len(content) // 2])

    def full(file: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for failing in (half, full):
        monkeypatch.setattr(os, "write", failing)
        with pytest.warns(TabNSMWarning, match="could not be written to .*epochs.csv"):
            log.on_epoch(1, history(2))
        assert epochs(path) == [(1, 1)]
    monkeypatch.undo()
    log.on_epoch(1, history(3))
    assert epochs(path) == [(1, 1), (1, 2), (1, 3)]


def test_a_folder_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="The output's folder must exist"):
        CSVLog(tmp_path / "missing" / "epochs.csv")


FIT = """
import sys
import numpy as np
from tabnsm import TabNSMRegressor
from tabnsm.callbacks import CSVLog
X = np.random.default_rng(0).normal(size=(80, 3))
model = TabNSMRegressor(
    preset="fast", max_epochs=int(sys.argv[2]), patience=10**6, random_state=0, checkpoint_dir="run"
)
log = CSVLog("epochs.csv", append=True)
model.fit(X, X[:, 0] * X[:, 1], resume=True, callbacks=[log])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is for POSIX systems")
def test_a_killed_fit_leaves_whole_lines_and_resumes(tmp_path: Path) -> None:
    path = tmp_path / "epochs.csv"
    arguments = [sys.executable, "-c", FIT, "-", "100000"]
    process = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if path.exists() and path.read_bytes().count(b"\n") > 5:
            break
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    content = path.read_bytes()
    assert content.endswith(b"\n")
    n_lines = content.count(b"\n") - 1
    assert epochs(path) == [(1, k) for k in range(1, n_lines + 1)]
    # Resumed, which reads the epochs that it did: one line each, none twice or missing. The
    # number of epochs is an option, so that the resumed fit has to have the same.
    again = subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.DEVNULL)
    for _ in range(3000):
        if path.read_bytes().count(b"\n") > n_lines + 4:
            break
        assert again.poll() is None
        time.sleep(0.1)
    again.send_signal(signal.SIGKILL)
    again.wait()
    found = epochs(path)
    assert found == [(1, k) for k in range(1, len(found) + 1)]
    assert len(found) > n_lines
