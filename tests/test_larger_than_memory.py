"""A fit needs less memory than the table has, and a killed one goes on where it was."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tabnsm import TabNSMRegressor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")

N_ROWS, N_COLUMNS, N_FILES = 1_000_000, 40, 4
LIMIT_MB = 700  # of which the libraries take about 320; the rows alone are 320 as float64

# Arrow's own allocator reserves a gigabyte of addresses, which the limit would count.
FIT = """
import os, resource, sys
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
from tabnsm import TabNSMRegressor
folder, way, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]) * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
model = TabNSMRegressor(preset="fast", max_epochs=1, time_limit=2, batch_size=4096,
                        validation_fraction=0.01, target_means=False, random_state=0)
if way == "memory":
    import pandas as pd
    frame = pd.read_parquet(folder)
    model.fit(frame.drop(columns="y"), frame["y"])
else:
    model.fit(folder, "y", work_dir=sys.argv[4])
print("FITTED", model.encoder_.n_features)
"""


def write_large(folder: Path) -> None:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(N_FILES):
        rows = rng.normal(size=(N_COLUMNS, N_ROWS // N_FILES)).astype(np.float32)
        columns = {f"x{j}": row for j, row in enumerate(rows)}
        columns["y"] = rows[0] * rows[1] + rows[2]
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        pq.write_table(table, folder / f"{k}.parquet", compression="none", use_dictionary=False)


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.slow
def test_a_table_that_memory_does_not_hold(tmp_path):
    write_large(tmp_path / "data")
    work = tmp_path / "work"
    done = run(FIT, tmp_path / "data", "disk", LIMIT_MB, work)
    assert f"FITTED {N_COLUMNS}" in done.stdout, done.stderr[-2000:]
    assert not list(work.iterdir())
    done = run(FIT, tmp_path / "data", "memory", LIMIT_MB)
    assert done.returncode != 0
    assert "emory" in done.stderr


STRINGS_LIMIT_MB = 600
# What a hash says of a text is enough here; the limit is for what is known of the strings.
ENCODE = """
import os, resource, sys, zlib
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
import numpy as np
from tabnsm.options import resolve_options
from tabnsm.tables import dataset
from tabnsm.training.prepare import FitRows
from tabnsm.work_folder import work_folder

class Hashed:
    name = fingerprint = "hashed"
    d_text = 4
    def encode(self, texts):
        return np.eye(4, dtype=np.float32)[[zlib.crc32(text.encode()) % 4 for text in texts]]
    def count_truncated(self, texts):
        return 0

folder, way, limit = sys.argv[1], sys.argv[2], int(sys.argv[3]) * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
if way == "memory":
    dataset._MAX_STRING_BYTES = 2**60
options = {"preset": "fast", "text_encoder": Hashed(), "text_cache": False, "select_text": False}
with work_folder(sys.argv[4]) as place:
    rows = FitRows.collect(folder, "y", random_state=0, folder=place)
    encoder, _ = rows.encode(resolve_options(options).encoder)
print("ENCODED", *(spec.kind for spec in encoder.specs))
"""


@pytest.mark.slow
def test_strings_that_memory_does_not_hold(tmp_path):
    n_rows, rng = 1_000_000, np.random.default_rng(0)
    texts = [f"house {k} in street {k * 7919 % 1_000_003} of a town" for k in range(n_rows)]
    table = pa.table({"note": texts, "x": rng.normal(size=n_rows), "y": rng.normal(size=n_rows)})
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "a.parquet", row_group_size=100_000)
    done = run(ENCODE, tmp_path / "data", "disk", STRINGS_LIMIT_MB, tmp_path / "work")
    assert "ENCODED text numeric" in done.stdout, done.stderr[-2000:]
    done = run(ENCODE, tmp_path / "data", "memory", STRINGS_LIMIT_MB, tmp_path / "work")
    assert done.returncode != 0
    assert "emory" in done.stderr


def write_slow(folder: Path) -> None:
    """Few rows whose passes take a while: numbers are written as strings."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(2):
        rows = np.round(1000 * rng.normal(size=(6, 15_000)), 2)
        columns = {f"x{j}": [f"${value:,.2f}" for value in row] for j, row in enumerate(rows)}
        table = pa.table(columns | {"y": rows[0] + np.abs(rows[1])})
        pq.write_table(table, folder / f"{k}.parquet")


class Command:
    """``tabnsm fit`` of a folder, to be started again and again."""

    def __init__(self, place: Path, data: Path, name: str) -> None:
        self.out, self.work = place / f"{name}.safetensors", place / f"{name}-work"
        self.run = place / f"{name}-run"
        config = place / "config.json"
        config.write_text('{"batch_size": 2048, "validation_fraction": 0.5}')
        where = ["--target", "y", "--out", self.out, "--config", config]
        keep = ["--work-dir", self.work, "--checkpoint-dir", self.run, "--resume"]
        train = ["--preset", "fast", "--epochs", "5", "--verbose"]
        code = "from tabnsm.cli import main; raise SystemExit(main())"
        command = [sys.executable, "-c", code, "fit", data, *where, *keep, *train]
        self.command = list(map(str, command))

    def start(self, at: str = "", number: int = 0) -> tuple[int, str]:
        """Run it; a line of its progress that begins so is answered by a signal."""
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            self.command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            # Where the tests themselves ignore Ctrl-C, as in the background of a shell.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        lines = []
        with process:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line)
                if at and re.match(at, line):
                    process.send_signal(number)
                    at = ""
        return process.returncode, "".join(lines)

    def left(self) -> list[Path]:
        return list(self.work.iterdir())


def epochs(progress: str) -> list[int]:
    return [int(number) for number in re.findall(r"^epoch +(\d+)", progress, re.M)]


@pytest.mark.slow
def test_ctrl_c_and_kill_lose_at_most_a_pass_or_an_epoch(tmp_path):
    write_slow(tmp_path / "data")
    whole = Command(tmp_path, tmp_path / "data", "whole")
    code, progress = whole.start()
    assert (code, epochs(progress)) == (0, [1, 2, 3, 4, 5]), progress
    assert not whole.left()
    stopped = Command(tmp_path, tmp_path / "data", "stopped")
    code, progress = stopped.start("Reading columns: 6", signal.SIGINT)
    assert code == 130, progress
    code, progress = stopped.start("Encoding columns: 6", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert "Reading columns: done" in progress  # the pass that was interrupted
    code, progress = stopped.start("Encoding columns: 6", signal.SIGINT)
    assert code == 130, progress
    assert "Reading columns" not in progress
    code, progress = stopped.start("epoch +2 ", signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert "Reading columns" not in progress
    assert not stopped.out.exists()
    code, progress = stopped.start("epoch +3 ", signal.SIGINT)
    assert code == 0, progress
    assert "are used again" in progress
    assert epochs(progress)[0] in (2, 3)
    assert "Training was interrupted" in progress
    assert len(TabNSMRegressor.load(stopped.out).history_) in (3, 4)
    assert len(stopped.left()) == 1
    code, progress = stopped.start()
    assert (code, epochs(progress)[-1]) == (0, 5), progress
    assert epochs(progress)[0] >= 3
    assert not stopped.left()
    expected, found = (TabNSMRegressor.load(one.out) for one in (whole, stopped))
    weights = found.model_.state_dict()
    assert all(torch.equal(w, weights[name]) for name, w in expected.model_.state_dict().items())
    assert expected.validation_rmse_ == found.validation_rmse_
    assert [r.train_loss for r in expected.history_] == [r.train_loss for r in found.history_]
