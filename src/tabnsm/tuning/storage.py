"""Where a study is kept: a file, or a database that processes on many machines reach."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from tabnsm.tuning.database import StudyDatabase, check_database
from tabnsm.tuning.journal import StudyFile, check_journal

if TYPE_CHECKING:
    from optuna.storages import BaseStorage


class StudyStorage(Protocol):
    """Optuna's storage of a study, and which of its processes are alive.

    Attributes
    ----------
    storage : optuna.storages.BaseStorage
    worker : int
        This process's number.
    name : str
        File or database, without a password.
    """

    storage: BaseStorage
    worker: int
    name: str

    def claim(self) -> AbstractContextManager[None]:
        """Only one process at a time looks for its next trial."""

    def is_alive(self, worker: int | None) -> bool:
        """Whether the process with this number still works on the study."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def is_url(storage: str | Path) -> bool:
    """Whether a storage is a database's URL.

    Examples
    --------
    >>> is_url("postgresql://me@db/studies"), is_url("study.journal")
    (True, False)
    """
    return "://" in str(storage)


def open_storage(storage: str | Path) -> StudyStorage:
    """The journal or the database that a user named."""
    return StudyDatabase(str(storage)) if is_url(storage) else StudyFile(storage)


def check_storage(storage: str | Path) -> None:
    """Refuse, before anything is written, what is no study and cannot become one."""
    if is_url(storage):
        check_database(str(storage))
    else:
        check_journal(Path(storage))
