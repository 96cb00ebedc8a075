"""The database of a study: processes on many machines share it, and any may be killed.

As in a file, locks tell at once which processes are gone; see `tabnsm.tuning.journal`. A server
holds them for a connection and frees them when it breaks.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm.errors import InvalidOptionError, MissingExtraError
from tabnsm.tuning.journal import FileLocks, check_locks

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from sqlalchemy import URL, Connection

CLAIM = 0x7AB_0001
"""The number that a process locks while it looks for its next trial."""
_SECONDS_FOR_SQLITE = 60


@dataclass(frozen=True)
class _Server:
    """How a server is asked for locks that end with the connection.

    `lock` waits, `try_lock` is true if it got the lock at once; ``{}`` is a number.
    """

    extra: str
    driver: str
    set_up: str
    lock: str
    try_lock: str
    unlock: str


# Locks of MySQL are those of the whole server, not of one database.
_NAME = "CONCAT('tabnsm', MD5(DATABASE()), '{}')"
_YEAR = 31_536_000
SERVERS = {
    "postgresql": _Server(
        "postgres",
        "psycopg",
        # A machine that vanished from the network is noticed after a minute.
        "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; "
        "SET tcp_keepalives_count = 3",
        "SELECT pg_advisory_lock({})",
        "SELECT pg_try_advisory_lock({})",
        "SELECT pg_advisory_unlock({})",
    ),
    "mysql": _Server(
        "mysql",
        "pymysql",
        # Else the server ends a connection that is idle during a long trial.
        f"SET SESSION wait_timeout = {_YEAR}",
        f"SELECT GET_LOCK({_NAME}, {_YEAR})",
        f"SELECT GET_LOCK({_NAME}, 0)",
        f"SELECT RELEASE_LOCK({_NAME})",
    ),
}
"""Servers by SQLAlchemy's name of their kind."""
_ALIASES = {"postgres": "postgresql", "mariadb": "mysql"}


class ServerLocks:
    """Locks of a server, which frees those of a process that is gone.

    Parameters
    ----------
    url : sqlalchemy.URL

    Attributes
    ----------
    worker : int
        What this process locks as long as it lives.
    """

    def __init__(self, url: URL) -> None:
        self.worker = CLAIM + 1 + secrets.randbits(60)
        self._server = SERVERS[url.get_backend_name()]
        self._connection = _connect(url)
        self._connection.exec_driver_sql(self._server.set_up)
        self._run(self._server.lock, self.worker)

    @contextmanager
    def claim(self) -> Iterator[None]:
        """Only one process at a time looks for its next trial."""
        self._run(self._server.lock, CLAIM)
        try:
            yield
        finally:
            self._run(self._server.unlock, CLAIM)

    def is_alive(self, worker: int | None) -> bool:
        """Whether the process that locked this number still does; asked within `claim`."""
        if worker is None:
            return False
        if worker == self.worker:
            return True
        if not self._run(self._server.try_lock, worker):
            return True
        self._run(self._server.unlock, worker)
        return False

    def close(self) -> None:
        """Free all locks."""
        self._connection.invalidate()  # closed for good, in whatever state it is
        self._connection.close()

    def _run(self, statement: str, number: int) -> Any:
        return self._connection.exec_driver_sql(statement.format(int(number))).scalar()


class StudyDatabase:
    """Optuna's tables in a database, with locks that a killed process cannot leave behind.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host/database``, ``mysql://...``, ``mariadb://...`` or
        ``sqlite:///file.db``; the tables are made if they are not there.

    Attributes
    ----------
    storage : optuna.storages.RDBStorage
    worker : int
        This process's number.
    name : str
        The URL without its password.
    """

    def __init__(self, url: str) -> None:
        from optuna.storages import RDBStorage

        parsed = parse_url(url)
        self.name = parsed.render_as_string(hide_password=True)
        is_file = parsed.get_backend_name() == "sqlite"
        self._locks = FileLocks(Path(str(parsed.database))) if is_file else ServerLocks(parsed)
        self.worker, self.claim, self.is_alive = (
            self._locks.worker,
            self._locks.claim,
            self._locks.is_alive,
        )
        options: dict[str, Any] = {"pool_pre_ping": True}
        if is_file:
            options["connect_args"] = {"timeout": _SECONDS_FOR_SQLITE}
        try:
            # One at a time: two processes that make the tables at once would fail.
            with self.claim():
                written = parsed.render_as_string(hide_password=False)
                self.storage: BaseStorage = RDBStorage(written, engine_kwargs=options)
        except BaseException:
            self._locks.close()
            raise

    def __enter__(self) -> StudyDatabase:
        return self

    def __exit__(self, *error: object) -> None:
        storage: Any = self.storage
        storage.remove_session()
        storage.engine.dispose()
        self._locks.close()


def parse_url(url: str) -> URL:
    """A URL of a kind that has locks, with the driver that the extra installs.

    Examples
    --------
    >>> str(parse_url("postgresql://me@db/studies"))
    'postgresql+psycopg://me@db/studies'
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        parsed = None
    backend, _, driver = ("" if parsed is None else parsed.drivername).partition("+")
    backend = _ALIASES.get(backend, backend)
    if parsed is None or backend not in (*SERVERS, "sqlite"):
        shown = url if parsed is None else parsed.render_as_string(hide_password=True)
        raise InvalidOptionError(
            "storage must be a file, postgresql://user:password@host/database, mysql://..., "
            f"mariadb://... or sqlite:///file.db, got {shown!r}."
        )
    if backend == "sqlite" and (not parsed.database or parsed.database == ":memory:"):
        raise InvalidOptionError(
            f"storage must name a file of SQLite, as in sqlite:///file.db, got {url!r}. "
            "Leave it out to keep nothing."
        )
    if backend in SERVERS:
        parsed = parsed.set(drivername=f"{backend}+{driver or SERVERS[backend].driver}")
    return parsed


def check_database(url: str) -> None:
    """Refuse, before any work, a database that cannot be reached."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        check_locks(Path(str(parsed.database)))
    _connect(parsed).close()


def _connect(url: URL) -> Connection:
    """A connection of its own, whose statements each stand alone."""
    import sqlalchemy
    from sqlalchemy.exc import DBAPIError

    try:
        engine = sqlalchemy.create_engine(
            url, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT"
        )
        connection = engine.connect()
        if url.get_backend_name() == "sqlite":  # which opens any file
            connection.exec_driver_sql("PRAGMA schema_version")
        return connection
    except ImportError as error:
        server = SERVERS.get(url.get_backend_name())
        if server is not None and url.get_driver_name() == server.driver:
            raise MissingExtraError(server.extra, "Searches in such a database") from error
        raise InvalidOptionError(
            f"storage must name a driver that is installed, got {url.drivername!r} ({error})."
        ) from error
    except DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        raise InvalidOptionError(
            "storage must be a database that can be reached, got "
            f"{url.render_as_string(hide_password=True)!r} ({reason})."
        ) from error
