"""CSVLog: one line of a CSV file per epoch."""

from __future__ import annotations

import csv
import os
from dataclasses import asdict, fields
from pathlib import Path

from tabnsm.errors import InvalidOptionError, warn
from tabnsm.files.output_path import check_output
from tabnsm.training.callbacks import Callback
from tabnsm.training.history import EpochRecord, History

_BINARY = getattr(os, "O_BINARY", 0)  # Windows
COLUMNS = ("network", *(field.name for field in fields(EpochRecord)))


class CSVLog(Callback):
    """Write every epoch to a CSV file while training goes on.

    A line is written whole and at once, so that the file can be read at any time and keeps what
    it has if the process is killed. Its columns are those of ``training_history()`` without
    `is_best`. Where a line cannot be written, a warning gives the reason, training goes on, and
    the line is written with the next one.

    Parameters
    ----------
    path : str or Path
        Of the file, such as "epochs.csv"; its folder must exist.
    append : bool, default False
        Whether to continue a file that is there, for ``fit(..., resume=True)``: epochs that it
        has are not written again. Else it is overwritten.

    Examples
    --------
    >>> import tempfile
    >>> record = EpochRecord(1, 0.5, 2.0, 1e-3, 0.1, False, 1.5, 2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = CSVLog(f"{folder}/epochs.csv")
    ...     log.on_epoch(1, History([record], best_epoch=1))
    ...     print(Path(log.path).read_text().splitlines()[1])
    1,1,0.5,2.0,0.001,0.1,False,1.5,2.0
    """

    def __init__(self, path: str | Path, *, append: bool = False) -> None:
        self.path = check_output(path)
        self.append = append
        self._n_written: dict[int, int] | None = None  # epochs of each network; None: not begun

    def on_epoch(self, network: int, history: History) -> None:
        """Write the epochs of a network that the file does not have."""
        try:
            if self._n_written is None:
                self._n_written = self._begin()
            first = self._n_written.get(network, 0)
            rows = [(network, *asdict(record).values()) for record in history.epochs[first:]]
            self._write(rows)
            self._n_written[network] = max(first, len(history))
        except OSError as error:
            warn(
                f"Epoch {len(history)} could not be written to {self.path} ({error.strerror}). "
                "Training goes on; it is written with the next epoch that can be."
            )

    def on_end(self, model: object) -> None:
        """The next fit begins a new file, or appends to this one."""
        self._n_written = None

    def _begin(self) -> dict[int, int]:
        """Begin the file, or find the epochs that it has."""
        if self.append and self.path.exists() and self.path.stat().st_size:
            return self._find_epochs()
        self.path.write_bytes(b"")
        self._write([COLUMNS])
        return {}

    def _find_epochs(self) -> dict[int, int]:
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = list(csv.reader(whole.decode("utf-8", "replace").splitlines()))
        if not lines or tuple(lines[0]) != COLUMNS:
            raise InvalidOptionError(
                f"{self.path} must be a file of CSVLog to append to, but its first line is not "
                f"{','.join(COLUMNS)}. Give another path, or append=False to overwrite it."
            )
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))  # a line that another program cut
        found: dict[int, int] = {}
        for network, epoch, *_ in lines[1:]:
            found[int(network)] = max(found.get(int(network), 0), int(epoch))
        return found

    def _write(self, rows: list[tuple[object, ...]] | list[tuple[str, ...]]) -> None:
        """Append lines by one call of the system, all of them or none."""
        content = "".join(",".join(_cell(x) for x in row) + "\n" for row in rows).encode()
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | _BINARY)
        try:
            size = os.fstat(file).st_size
            n_written = os.write(file, content)
            if n_written < len(content):
                os.ftruncate(file, size)
                raise OSError(0, "the disk is full")
        finally:
            os.close(file)


def _cell(value: object) -> str:
    return "" if value is None else str(value)
