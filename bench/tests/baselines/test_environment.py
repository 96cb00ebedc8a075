"""Environments are made for real: a venv, a wheel that pip installs, a process that is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines import environment as environments
from tabnsm_bench.baselines.catalog import make
from tabnsm_bench.baselines.environment import (
    Environment,
    EnvironmentFailedError,
    EnvironmentSpec,
    environments_dir,
    make_environment,
    open_environment,
)
from tabnsm_bench.baselines.remote import RemoteError, RemoteMethod
from tabnsm_bench.protocol import Prepared

pytestmark = pytest.mark.slow

METADATA = "Metadata-Version: 2.1\nName: tabnsm-toy\nVersion: 1.0\n{}"


def make_wheel(folder: Path, requires: str = "", code: str = "ANSWER = 42\n") -> Path:
    """The smallest wheel that pip takes."""
    path = folder / "tabnsm_toy-1.0-py3-none-any.whl"
    info = "tabnsm_toy-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tabnsm_toy.py", code)
        wheel.writestr(f"{info}/METADATA", METADATA.format(requires))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def toy(home: Path) -> EnvironmentSpec:
    return EnvironmentSpec("toy", (str(make_wheel(home)),), ("tabnsm_toy",))


@pytest.fixture
def made(home: Path, toy: EnvironmentSpec, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """The toy environment, made by whichever test needs it first."""
    monkeypatch.setenv("TABNSM_CACHE", str(home))
    return open_environment(toy) or make_environment(toy)


def python(made: Environment, code: str) -> str:
    return environments._ask(made.python, code).strip()


def test_it_has_what_differs_and_sees_the_rest(made: Environment, toy: EnvironmentSpec) -> None:
    assert python(made, "import tabnsm_toy; print(tabnsm_toy.ANSWER)") == "42"
    assert python(made, "import numpy; print(numpy.__version__)") == np.__version__
    assert made.packages == {"tabnsm-toy": "1.0"}
    assert made.folder == environments_dir() / "toy"
    assert [path.name for path in environments_dir().iterdir()] == ["toy"]
    with pytest.raises(ModuleNotFoundError):
        import tabnsm_toy  # noqa: F401
    assert open_environment(toy) == made


def test_one_that_no_longer_fits_does_not_count(made: Environment, toy: EnvironmentSpec) -> None:
    changed = EnvironmentSpec("toy", (*toy.requirements, "numpy"), toy.modules)
    assert open_environment(changed) is None
    record = made.folder / environments.RECORD
    before = record.read_text()
    facts = json.loads(before)
    facts["made_for"]["kept"]["torch"] = "1.0"
    record.write_text(json.dumps(facts))
    assert open_environment(toy) is None
    record.write_text("{")
    assert open_environment(toy) is None
    record.write_text(before)
    assert open_environment(toy) is not None


@pytest.mark.parametrize(
    ("requires", "code", "message"),
    [
        ("Requires-Dist: torch==0.0.1\n", "", "pip could not install it"),
        ("", "import no_such_module\n", "No module named 'no_such_module'"),
    ],
)
def test_nothing_is_left_of_a_failure(
    tmp_path: Path, requires: str, code: str, message: str
) -> None:
    spec = EnvironmentSpec("bad", (str(make_wheel(tmp_path, requires, code)),), ("tabnsm_toy",))
    lines: list[str] = []
    with pytest.raises(EnvironmentFailedError, match=message):
        make_environment(spec, lines.append)
    assert any("tabnsm_toy" in line or "tabnsm-toy" in line for line in lines)
    assert list(environments_dir().iterdir()) == []


def test_an_old_leftover_goes_and_a_new_one_stays(tmp_path: Path) -> None:
    old, new = tmp_path / ".toy.1", tmp_path / ".toy.2"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    environments._remove_leftovers(tmp_path, "toy")
    assert not old.exists()
    assert new.exists()


def test_a_method_there_gives_what_it_gives_here(made: Environment, mixed: Prepared) -> None:
    here, there = make("ridge"), RemoteMethod(made, "ridge", {})
    options = {"seed": 0, "time_limit": None, "n_threads": 1}
    local, remote = (method.fit(mixed, **options) for method in (here, there))  # type: ignore[arg-type]
    assert remote["environment"] == "toy"
    assert remote["options"] == local["options"]
    assert remote["peak_memory_mb"] > 10
    assert remote["fit_cpu_seconds"] > 0
    for x in (mixed.test.x, mixed.validation.x):
        np.testing.assert_array_equal(there.predict(x, None), here.predict(x, None))
    there.close()
    with pytest.raises(RemoteError, match="ended"):
        there.predict(mixed.test.x, None)


def test_its_errors_reach_the_user(made: Environment, mixed: Prepared) -> None:
    with pytest.raises(InvalidOptionError, match="got 'beta'"):
        RemoteMethod(made, "ridge", {"beta": 1})
    method = RemoteMethod(made, "knn-5", {"n_neighbors": 10**6})
    with pytest.raises(RemoteError, match="n_neighbors"):
        method.fit(mixed, seed=0, time_limit=None, n_threads=1)


def test_memory_that_runs_out_is_named(made: Environment, mixed: Prepared) -> None:
    # More than any machine can address, so that nothing is taken before it is refused.
    method = RemoteMethod(made, "mlp", {"d_block": 10**15, "max_epochs": 1})
    with pytest.raises(MemoryError, match=r"mlp ran out of memory\. Give it fewer rows"):
        method.fit(mixed, seed=0, time_limit=None, n_threads=1)


def test_pins_and_limits_of_a_package_can_be_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABNSM_CACHE", str(tmp_path))
    limits = "Requires-Python: <3.0\nRequires-Dist: torch==0.0.1\n"
    wheel = str(make_wheel(tmp_path, limits))
    spec = EnvironmentSpec("free", (), ("tabnsm_toy",), without_requirements=(wheel,))
    assert make_environment(spec).packages == {"tabnsm-toy": "1.0"}
    assert open_environment(spec) is not None
    assert open_environment(EnvironmentSpec("free", (), ("tabnsm_toy",))) is None


def endless(made: Environment, **options: float) -> RemoteMethod:
    never = {"max_epochs": 10**6, "patience": 10**6}
    return RemoteMethod(made, "mlp", never, **options)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_method_that_is_killed_is_an_error(made: Environment, mixed: Prepared) -> None:
    method = endless(made)
    threading.Timer(1.0, os.kill, (method.pid, signal.SIGKILL)).start()
    with pytest.raises(RemoteError, match=r"of mlp was killed .* memory runs out. Give it fewer"):
        method.fit(mixed, seed=0, time_limit=None, n_threads=1)


def test_a_method_that_ignores_its_limit_is_killed(made: Environment, mixed: Prepared) -> None:
    # Stopped, a process cannot keep to any limit.
    method = endless(made, grace=0.5)
    os.kill(method.pid, signal.SIGSTOP)
    with pytest.raises(TimeoutError, match=r"mlp did not end within 0\.6 s"):
        method.fit(mixed, seed=0, time_limit=0.1, n_threads=1)
    assert not is_alive(method.pid)


def test_its_process_ends_with_it(made: Environment) -> None:
    method = RemoteMethod(made, "ridge", {})
    pid, folder = method.pid, Path(method._folder.name)
    assert is_alive(pid)
    assert folder.exists()
    del method
    assert not is_alive(pid)
    assert not folder.exists()


def test_its_process_ends_with_the_parent(made: Environment, mixed: Prepared) -> None:
    method = endless(made)
    fitting = threading.Thread(target=_fit_until_the_end, args=(method, mixed))
    fitting.start()
    time.sleep(0.5)
    assert method._process.stdin is not None
    method._process.stdin.close()  # as the system does when the parent is killed
    fitting.join()
    assert method._process.poll() == 0


def _fit_until_the_end(method: RemoteMethod, data: Prepared) -> None:
    with pytest.raises(RemoteError):
        method.fit(data, seed=0, time_limit=None, n_threads=1)
