"""Searches in databases: real servers on loopback, each in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.tuning import Choice, Integer, Real, TuningResult, search
from tabnsm.tuning.database import parse_url
from tabnsm.tuning.report import Report
from tests.tuning.servers import PASSWORD, Server, mariadb, postgresql

SPACE = {"x": Real(-3, 3), "n": Integer(1, 5), "kind": Choice("a", "b")}


def bowl(options: dict[str, Any], report: Report) -> float:
    return float(options["x"] ** 2 + options["n"] + (options["kind"] == "b"))


def states(result: TuningResult) -> list[str]:
    return [trial.state for trial in result.trials]


@pytest.fixture(scope="module", params=[postgresql, mariadb])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as running:
        yield running


@pytest.fixture
def database(server: Server, request: pytest.FixtureRequest) -> str:
    """URL of an empty database."""
    return server.new_database(f"study_{abs(hash(request.node.name))}")


# The objective logs every trial that is begun, and waits until all processes are in one.
WORKER = """
import os, sys, time
from pathlib import Path
from tabnsm.tuning import Choice, Integer, Real, search

storage, folder, n_trials, n_processes = sys.argv[1:]

def bowl(options, report):
    mine = Path(folder) / f"at-work-{os.getpid()}"
    with mine.open("a") as log:
        log.write(f"{sorted(options.items())}\\n")
    give_up = time.monotonic() + 120
    while len(list(Path(folder).glob("at-work-*"))) < int(n_processes):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    for step in range(1, 4):
        print("step", flush=True)
        time.sleep(0.05)
        report(step, 100.0)
    return options["x"] ** 2 + options["n"] + (options["kind"] == "b")

space = {"x": Real(-3, 3), "n": Integer(1, 5), "kind": Choice("a", "b")}
search(space, bowl, int(n_trials), storage=storage)
"""


def start(storage: str, folder: Path, n_trials: int, n_processes: int) -> subprocess.Popen[str]:
    arguments = [storage, str(folder), str(n_trials), str(n_processes)]
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_four_processes_share_a_study_and_one_is_killed(database: str, tmp_path: Path) -> None:
    processes = [start(database, tmp_path, 12, 4) for _ in range(4)]
    killed = processes.pop(1)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "step\n"
    killed.kill()
    killed.communicate()
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors

    def never(options: dict[str, Any], report: Report) -> float:
        raise AssertionError(options)

    result = search(SPACE, never, 12, storage=database)
    assert Counter(states(result)) == {"complete": 12, "repeated": 1}
    logs = [log.read_text() for log in tmp_path.glob("at-work-*")]
    begun = Counter("".join(logs).splitlines())
    repeated = next(trial for trial in result.trials if trial.state == "repeated")
    again = [trial for trial in result.trials if trial.options == repeated.options]
    assert [trial.state for trial in again] == ["repeated", "complete"]
    assert sorted(begun.values()) == [1] * 11 + [2]
    assert begun[f"{sorted(repeated.options.items())}"] == 2


@pytest.mark.slow
def test_a_search_in_a_database_is_that_of_memory_and_hides_its_password(database: str) -> None:
    first = search(SPACE, bowl, 4, storage=database, fingerprint="a")
    assert first.trials[3].options == search(SPACE, bowl, 4).trials[3].options
    assert PASSWORD not in str(first.storage)
    assert "***" in str(first.storage)
    resumed = search(SPACE, bowl, 6, storage=database, fingerprint="a")
    assert resumed.trials[:4] == first.trials
    assert states(resumed) == ["complete"] * 6
    with pytest.raises(InvalidOptionError, match="made with other data or options") as refused:
        search(SPACE, bowl, 6, storage=database, fingerprint="b")
    assert PASSWORD not in str(refused.value)


@pytest.mark.slow
def test_a_wrong_password_is_refused_before_any_trial(database: str) -> None:
    wrong = database.replace("secret", "guess")
    with pytest.raises(InvalidOptionError, match=r"can be reached.*(authentication|denied)") as e:
        search(SPACE, bowl, 2, storage=wrong)
    assert "guess" not in str(e.value)


@pytest.mark.parametrize(("kind", "driver"), [("postgresql", "psycopg"), ("mysql", "pymysql")])
def test_a_server_that_does_not_answer_is_refused(kind: str, driver: str) -> None:
    pytest.importorskip(driver)
    with pytest.raises(InvalidOptionError, match=r"must be a database that can be reached"):
        search(SPACE, bowl, 2, storage=f"{kind}://me@127.0.0.1:9/study")


def test_a_study_in_sqlite_continues(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/study.db"
    first = search(SPACE, bowl, 2, storage=storage)
    second = search(SPACE, bowl, 3, storage=storage)
    assert second.trials[:2] == first.trials
    assert second.storage == storage
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("oracle://me:secret@db/study", r"postgresql://user:password@host/database"),
        ("sqlite://", "must name a file of SQLite"),
        ("sqlite:///no/such/folder/study.db", "which does not exist"),
        ("://", "storage must be a file"),
    ],
)
def test_urls_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message) as refused:
        search(SPACE, bowl, 1, storage=url)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n1,2\n" * 100)
    with pytest.raises(InvalidOptionError, match="not a database"):
        search(SPACE, bowl, 1, storage=f"sqlite:///{table}")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.setitem(sys.modules, "pymysql", None)
    with pytest.raises(MissingExtraError, match=r"tabnsm\[postgres\]"):
        search(SPACE, bowl, 1, storage="postgresql://me@127.0.0.1:9/study")
    with pytest.raises(MissingExtraError, match=r"tabnsm\[mysql\]"):
        search(SPACE, bowl, 1, storage="mariadb://me@127.0.0.1:9/study")
    with pytest.raises(InvalidOptionError, match="driver that is installed"):
        search(SPACE, bowl, 1, storage="postgresql+pg8000://me@127.0.0.1:9/study")


def test_the_usual_schemes() -> None:
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        assert parse_url(f"{scheme}://me@db/s").drivername == "postgresql+psycopg"
    for scheme in ("mysql", "mariadb", "mariadb+pymysql"):
        assert parse_url(f"{scheme}://me@db/s").drivername == "mysql+pymysql"
