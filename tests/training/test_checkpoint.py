"""Resume after kill -9: bit-equal to the run that nobody disturbed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tabnsm import InvalidOptionError, ModelFileError, TabNSMRegressor, TabNSMWarning
from tabnsm.training.checkpoint import FILE_NAME, locked_folder
from tabnsm.training.loop import Trainer, TrainingState
from tabnsm.training.prepare import FitRows

pytestmark = pytest.mark.usefixtures("one_network")

# A process that imports everything once and forks a child per life, one after the other. A child
# says READY when it trains; with "half" it stops in the middle of a checkpoint's bytes, says so,
# and waits for its end.
SCRIPT = """
import os, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from tabnsm import TabNSMRegressor, atomic
from tabnsm.training.loop import Trainer
step = Trainer.train_step
def slow_step(self, *args):
    time.sleep(0.004)
    return step(self, *args)
Trainer.train_step = slow_step
class Half:
    def __init__(self, stream): self.stream = stream
    def __enter__(self): return self
    def __exit__(self, *args): self.stream.close()
    def write(self, content):
        self.stream.write(content[: len(content) // 2])
        self.stream.flush()
        print("HALF", os.getpid(), flush=True)
        time.sleep(600)
def live(folder, out, half):
    if half == "half":
        atomic.open = lambda path, mode: Half(open(path, mode))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6)); X[::9, 2] = np.nan
    y = X[:, 0] * X[:, 1] + X[:, 3]
    model = TabNSMRegressor(max_epochs=60, patience=60, refresh_every=2, d_token=8, head_width=16,
                            n_ensemble=1, random_state=0, checkpoint_dir=folder)
    print("READY", os.getpid(), flush=True)
    model.fit(X, y, resume=True)
    np.save(out, model.predict(X))
    print("DONE", len(model.history_), flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        live(*line.rstrip("\\n").split("\\t"))
        os._exit(0)
    os.waitpid(child, 0)
    print("ENDED", flush=True)
"""


class Lives:
    """Trains in one child of the process after the other."""

    def __init__(self, process: subprocess.Popen[str], out: Path) -> None:
        self.process = process
        self.out = out

    def begin(self, folder: Path, half: str = "whole") -> None:
        assert self.process.stdin is not None
        print(folder, self.out, half, sep="\t", file=self.process.stdin, flush=True)

    def wait_for(self, word: str) -> int:
        """The number that the child says behind a word."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(word):
                return int("".join(line.split()[1:]) or 0)
            assert not line.startswith("ENDED"), f"it ended before it said {word}"
        pytest.fail("the process that forks has ended")


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    yield Lives(process, tmp_path / "out.npy")
    os.killpg(process.pid, signal.SIGKILL)  # a child that is left holds the pipe open
    process.communicate()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no fork on this system")
def test_twenty_kills_leave_no_trace_in_the_result(lives: Lives, tmp_path: Path) -> None:
    lives.begin(tmp_path / "calm")
    assert lives.wait_for("DONE") == 60
    lives.wait_for("ENDED")
    expected = np.load(lives.out)
    lives.out.unlink()

    folder = tmp_path / "killed"
    chance = random.Random(0)
    for number in range(20):
        during_write = number % 4 == 3
        lives.begin(folder, "half" if during_write else "whole")
        child = lives.wait_for("HALF" if during_write else "READY")
        if not during_write:
            time.sleep(chance.uniform(0.0, 0.25))
        os.kill(child, signal.SIGKILL)
        lives.wait_for("ENDED")
        assert not lives.out.exists()
        if during_write:
            assert list(folder.glob(".*.tmp")), "the kill did not hit a write"
    lives.begin(folder)
    assert lives.wait_for("DONE") == 60
    lives.wait_for("ENDED")
    np.testing.assert_array_equal(np.load(lives.out), expected)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


@pytest.fixture
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X[:, 0] * X[:, 1]


def model(folder: Path, **options: object) -> TabNSMRegressor:
    defaults = {"max_epochs": 4, "d_token": 8, "head_width": 8, "random_state": 0}
    return TabNSMRegressor(checkpoint_dir=folder, **(defaults | options))


def test_a_finished_run_resumes_to_itself(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray]
) -> None:
    first = model(tmp_path).fit(*table)
    again = model(tmp_path).fit(*table, resume=True)
    np.testing.assert_array_equal(first.predict(table[0]), again.predict(table[0]))
    assert again.history_.to_dict() == first.history_.to_dict()


def test_other_data_or_options_are_refused(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = table
    model(tmp_path).fit(X, y)
    for changed in (
        lambda: model(tmp_path).fit(X + 1e-3, y, resume=True),
        lambda: model(tmp_path).fit(X, y + 1e-3, resume=True),
        lambda: model(tmp_path).fit(X, y, sample_weight=np.full(80, 2.0), resume=True),
        lambda: model(tmp_path, learning_rate=1e-3).fit(X, y, resume=True),
        lambda: model(tmp_path, random_state=1).fit(X, y, resume=True),
    ):
        with pytest.raises(ModelFileError, match="same data and options"):
            changed()


def test_a_seed_that_cannot_be_restored_is_named(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray]
) -> None:
    model(tmp_path, random_state=None).fit(*table)
    with pytest.raises(ModelFileError, match="random_state must have been a number"):
        model(tmp_path, random_state=None).fit(*table, resume=True)


@pytest.mark.slow
def test_resume_is_bit_equal_with_every_way_to_weigh_draw_and_round(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table
    weight = np.linspace(0.5, 2, 80)
    step = Trainer.train_step

    def crash(self: Trainer, state: TrainingState, rows: torch.Tensor) -> float:
        if len(state.history) == 3:
            raise ConnectionError
        return step(self, state, rows)

    for number, (options, fit) in enumerate(
        (
            ({"preset": "paper"}, {"sample_weight": weight}),
            ({"precision": "bfloat16", "attention": "mamba"}, {}),
            ({"attention": "full", "mixer": False}, {"X_val": X[:9], "y_val": y[:9]}),
            ({"time_limit": 1e6}, {"validation_groups": np.arange(80) // 7}),
        )
    ):
        folder = tmp_path / str(number)
        options = {"max_epochs": 6, "refresh_every": 2, **options}
        calm = model(folder / "calm", **options).fit(X, y, **fit)
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "train_step", crash)
            with pytest.raises(ConnectionError):
                model(folder / "crashed", **options).fit(X, y, **fit)
        resumed = model(folder / "crashed", **options).fit(X, y, **fit, resume=True)
        assert len(resumed.history_) == 6
        np.testing.assert_array_equal(resumed.predict(X), calm.predict(X))


def test_a_damaged_checkpoint_is_refused(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray]
) -> None:
    model(tmp_path).fit(*table)
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="SHA-256"):
        model(tmp_path).fit(*table, resume=True)


def test_a_new_run_keeps_the_old_file(tmp_path: Path, table: tuple[np.ndarray, np.ndarray]) -> None:
    model(tmp_path).fit(*table)
    with pytest.warns(TabNSMWarning, match="from an earlier run and was kept"):
        model(tmp_path).fit(*table)
    assert {path.name for path in tmp_path.iterdir()} == {
        FILE_NAME,
        "checkpoint.previous.safetensors",
    }


# Trains with the disk full from epoch 4 on, then resumes with room again.
FULL_DISK = """
import resource, shutil, sys, warnings
from pathlib import Path
import numpy as np
from tabnsm import TabNSMRegressor
from tabnsm.training.loop import Trainer

folder, kind = Path(sys.argv[1]), sys.argv[2]
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
epoch = Trainer.train_epoch

def fill():
    if kind == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        return
    with open(folder.parent / "filler", "wb", buffering=0) as filler:
        while True:
            try:
                filler.write(bytes(4096))
            except OSError:
                return

def free():
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    (folder.parent / "filler").unlink(missing_ok=True)

def train_epoch(self, state):
    if len(state.history) == 3:
        fill()
    epoch(self, state)

def model(**options):
    return TabNSMRegressor(max_epochs=6, d_token=8, head_width=8, n_ensemble=1, random_state=0,
                           **options)

X = np.random.default_rng(0).normal(size=(80, 3))
y = X[:, 0] * X[:, 1]
Trainer.train_epoch = train_epoch
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    full = model(checkpoint_dir=folder).fit(X, y)
Trainer.train_epoch = epoch
free()
assert [path.name for path in folder.iterdir()] == ["checkpoint.safetensors"]
resumed = model(checkpoint_dir=folder).fit(X, y, resume=True)
calm = model().fit(X, y)
assert len(full.history_) == len(resumed.history_) == 6
assert resumed.history_[2].seconds == full.history_[2].seconds  # it went on after epoch 3
assert resumed.history_[3].seconds != full.history_[3].seconds
for other in (full, resumed):
    assert (other.predict(X) == calm.predict(X)).all()
for warning in caught:
    print(Path(warning.filename).name, warning.message)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no way to fill a disk on this system")
@pytest.mark.parametrize("kind", ["limit", "disk"])
def test_a_full_disk_costs_the_checkpoint_and_not_the_run(tmp_path: Path, kind: str) -> None:
    script, place = tmp_path / "script.py", tmp_path / "place"
    script.write_text(FULL_DISK)
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)]
    if kind == "disk" and (
        not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode
    ):
        pytest.skip("a small disk can only be mounted by root")
    try:
        result = subprocess.run(
            [sys.executable, str(script), str(place / "run"), kind], capture_output=True, text=True
        )
    finally:
        if kind == "disk":
            subprocess.run(["umount", str(place)], check=True)
    assert result.returncode == 0, result.stderr
    reason = {"limit": "File too large", "disk": "No space left on device"}[kind]
    assert result.stdout.splitlines() == [
        f"script.py The checkpoint {place / 'run' / FILE_NAME} could not be written ({reason}). "
        "Training goes on; the file keeps the state after epoch 3. Free space on the disk, or set "
        "checkpoint_dir to a folder on another one."
    ]


BUSY = """
import sys
import numpy as np
from tabnsm import TabNSMRegressor
X = np.random.default_rng(0).normal(size=(80, 3))
TabNSMRegressor(max_epochs=10**6, patience=10**6, d_token=8, head_width=8, n_ensemble=1,
                random_state=0, checkpoint_dir=sys.argv[1]).fit(X, X[:, 0] * X[:, 1])
"""


@pytest.mark.slow
def test_a_folder_is_for_one_fit_at_a_time(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with subprocess.Popen([sys.executable, "-c", BUSY, str(folder)]) as process:
        try:
            while not (folder / FILE_NAME).exists():
                assert process.poll() is None
                time.sleep(0.01)
            with monkeypatch.context() as patch:
                patch.setattr(FitRows, "collect", lambda *args: pytest.fail("worked"))
                with pytest.raises(InvalidOptionError, match="a folder that no other fit uses"):
                    model(folder).fit(*table)
            names = {path.name for path in folder.iterdir() if not path.name.endswith(".tmp")}
            assert names == {FILE_NAME, ".lock"}
        finally:
            process.kill()  # SIGKILL: the process cannot tidy up
    (folder / FILE_NAME).unlink()
    model(folder).fit(*table)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_the_lock_ends_with_the_fit_however_it_ends(
    tmp_path: Path, table: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Trainer, state: TrainingState) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", fail)
        with pytest.raises(ConnectionError):
            model(tmp_path).fit(*table)
    assert not list(tmp_path.iterdir())
    with locked_folder(tmp_path), pytest.raises(InvalidOptionError, match="no other fit"):
        model(tmp_path).fit(*table)
    model(tmp_path).fit(*table)


def test_no_folder_no_lock() -> None:
    with locked_folder(None), locked_folder(None):
        pass
