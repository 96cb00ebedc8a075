"""Servers of databases for tests: on loopback, each in a folder that is removed at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSWORD = "a-secret/of-the-test"


@dataclass(frozen=True)
class Server:
    """A server that runs: its URL without a database, and how to send it a statement."""

    url: str
    execute: Callable[[str], None]

    def new_database(self, name: str) -> str:
        """URL of an empty database."""
        self.execute(f"CREATE DATABASE {name}")
        return f"{self.url}/{name}"


@contextmanager
def postgresql() -> Iterator[Server]:
    """PostgreSQL, which does not run as root."""
    psycopg = pytest.importorskip("psycopg")
    found = [*sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")), shutil.which("initdb")]
    programs = [Path(path).parent for path in found if path]
    if not programs:
        pytest.skip("PostgreSQL is not installed; run: make databases")
    user = None
    if os.getuid() == 0:
        try:
            user = pwd.getpwnam("postgres").pw_uid
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user named postgres")
    with tempfile.TemporaryDirectory(prefix="tabnsm-postgres-") as name:
        folder, port = Path(name), free_port()
        if user is not None:
            os.chown(folder, user, -1)
        secret = folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        make = ["--auth=scram-sha-256", f"--pwfile={secret}", "--username=me", "--no-sync"]
        run([programs[-1] / "initdb", "--pgdata", folder / "data", "--encoding=UTF8", *make], user)
        settings = ["listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off"]
        flags = [part for setting in settings for part in ("-c", setting)]
        command = [programs[-1] / "postgres", "-D", folder / "data", "-p", str(port), *flags]
        url = f"postgresql://me:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{port}"

        def execute(statement: str) -> None:
            with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
                connection.execute(statement)

        with started(command, folder, signal.SIGINT, user) as process:  # a fast shutdown
            wait_for(lambda: execute("SELECT 1"), process, psycopg.OperationalError)
            yield Server(url, execute)


@contextmanager
def mariadb() -> Iterator[Server]:
    """MariaDB, which is a MySQL to its clients."""
    pymysql = pytest.importorskip("pymysql")
    if shutil.which("mariadb-install-db") is None:
        pytest.skip("MariaDB is not installed; run: make databases")
    program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
    owner = pwd.getpwuid(os.getuid()).pw_name
    with tempfile.TemporaryDirectory(prefix="tabnsm-mariadb-") as name:
        folder, port = Path(name), free_port()
        common = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={owner}"]
        run(["mariadb-install-db", *common, "--skip-test-db", "--skip-name-resolve"])
        where = ["--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder / 'socket'}"]
        small = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        log = [f"--log-error={folder / 'log'}", f"--pid-file={folder / 'pid'}"]

        def execute(statement: str) -> None:
            # As the owner of the server, whom it knows by the socket.
            connection = pymysql.connect(unix_socket=str(folder / "socket"), user=owner)
            with connection, connection.cursor() as cursor:
                cursor.execute(statement)

        command = [program, *common, *where, *small, *log]
        with started(command, folder, signal.SIGTERM) as process:
            wait_for(
                lambda: socket.create_connection(("127.0.0.1", port)).close(), process, OSError
            )
            execute(f"CREATE USER me@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'")
            execute("GRANT ALL ON *.* TO me@'127.0.0.1'")
            url = f"mysql://me:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{port}"
            yield Server(url, execute)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(command: list[Any], user: int | None = None) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", user=user)


@contextmanager
def started(
    command: list[Any], folder: Path, stop: signal.Signals, user: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=folder, user=user)
    try:
        yield process
    finally:
        process.send_signal(stop)
        process.wait(60)


def wait_for(
    ask: Callable[[], None], process: subprocess.Popen[bytes], refused: type[Exception]
) -> None:
    give_up = time.monotonic() + 60
    while True:
        assert process.poll() is None
        try:
            ask()
            return
        except refused:
            assert time.monotonic() < give_up
            time.sleep(0.05)
