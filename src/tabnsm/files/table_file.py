"""What all kinds of table files have in common: names first, then rows in batches."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidDataError

# Small enough to stay well under 100 MB with 1,000 features, large enough to keep cores busy.
BATCH_ROWS = 10_000


class TableFile(ABC):
    """A table on disk, of which only the column names have been read.

    Parameters
    ----------
    path : Path
        The file.
    names : list of str
        Its column names, in order.
    n_rows : int or None
        Number of rows, where it is known without reading them.
    """

    def __init__(self, path: Path, names: list[str], n_rows: int | None = None) -> None:
        self.path = path
        self.names = names
        self.n_rows = n_rows
        doubled = [repr(name) for name, count in Counter(names).items() if count > 1]
        if doubled:
            raise InvalidDataError(
                f"Column names must be unique, but {path} has {', '.join(doubled[:5])} more than "
                "once. Rename the extra columns."
            )

    @abstractmethod
    def _record_batches(
        self, columns: list[str], batch_rows: int, as_written: bool
    ) -> Iterator[Any]:
        """Yield pyarrow record batches of any size."""

    def read(self, columns: Sequence[str] | None = None) -> Any:
        """Read the whole table.

        Parameters
        ----------
        columns : sequence of str or None
            Columns to read; None for all.

        Returns
        -------
        pyarrow.Table
        """
        import pyarrow as pa

        return pa.concat_tables(self.batches(columns=columns))

    def batches(
        self,
        batch_rows: int = BATCH_ROWS,
        columns: Sequence[str] | None = None,
        *,
        as_written: bool = False,
        allow_empty: bool = False,
    ) -> Iterator[Any]:
        """Read the table piece by piece; memory depends on `batch_rows` alone.

        Parameters
        ----------
        batch_rows : int
            Rows of each piece but the last.
        columns : sequence of str or None
            Columns to read; None for all.
        as_written : bool
            Leave the cells of text files as they are, "NA" and "1,5" too.
        allow_empty : bool
            Yield one table without rows, in place of an error, if the file has only a header.

        Yields
        ------
        pyarrow.Table
        """
        chosen = self.names if columns is None else list(columns)
        for name in chosen:
            self.check_column(name)
        pieces = _regroup(self._record_batches(chosen, batch_rows, as_written), batch_rows)
        first = next(pieces, None)
        if first is None:
            if not allow_empty:
                raise InvalidDataError(
                    f"A table must have rows, but {self.path} has only a header."
                )
            yield _without_rows(chosen)
            return
        _reject_nested(self.path, first.schema)
        yield first
        yield from pieces

    def check_column(self, name: str, what: str = "") -> None:
        """Raise an error with a suggestion if there is no such column.

        Parameters
        ----------
        name : str
            Name of the column.
        what : str
            The option that asked for it, for the message.
        """
        if name in self.names:
            return
        asked = f"{what} must name a column of {self.path}, but there" if what else "There"
        where = "" if what else f" in {self.path}"
        plain = {known.strip().casefold(): known for known in self.names}
        close = difflib.get_close_matches(name.strip().casefold(), plain, n=1)
        shown = ", ".join(map(repr, self.names[:10])) + (", ..." if len(self.names) > 10 else "")
        remedy = f"Did you mean {plain[close[0]]!r}?" if close else f"Its columns: {shown}."
        raise InvalidDataError(f"{asked} is no column {name!r}{where}. {remedy}")


def _without_rows(names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array([], type=pa.string()) for name in names})


def _regroup(batches: Iterator[Any], batch_rows: int) -> Iterator[Any]:
    import pyarrow as pa

    pending: list[Any] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        if count >= batch_rows:
            table = pa.Table.from_batches(pending)
            for start in range(0, count - batch_rows + 1, batch_rows):
                yield table.slice(start, batch_rows)
            count %= batch_rows
            pending = table.slice(table.num_rows - count).to_batches()
    if count:
        yield pa.Table.from_batches(pending)


def _reject_nested(path: Path, schema: Any) -> None:
    import pyarrow.types as pt

    nested = [field.name for field in schema if pt.is_nested(field.type)]
    if nested:
        raise InvalidDataError(
            f"A cell must hold one value, but the column {nested[0]!r} of {path} holds "
            f"{schema.field(nested[0]).type}. Flatten it into columns of their own, or drop it."
        )
