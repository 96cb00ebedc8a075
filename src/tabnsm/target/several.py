"""One target or several, from whatever users have to an array (n, t)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidDataError
from tabnsm.tables import Table
from tabnsm.target.checks import check_target


class Targets(NamedTuple):
    """Targets of all rows.

    Parameters
    ----------
    values : ndarray of float64, shape (n, t)
        NaN where missing.
    names : tuple of str or None
        Names of the targets, if they have any.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...] | None = None

    def in_order(self, names: Sequence[str] | None, n_targets: int, what: str = "y_val") -> Targets:
        """The same targets in the order of others, by name where both have names.

        Parameters
        ----------
        names : sequence of str or None
            Of the others.
        n_targets : int
            How many those are.
        what : str, default="y_val"
            What messages call these.

        Raises
        ------
        InvalidDataError
            If they are other targets.
        """
        if n_targets > 1 and names is not None and self.names is not None:
            absent = [name for name in names if name not in self.names]
            if absent:
                raise InvalidDataError(
                    f"{what} must have the targets of fit, got none named {absent[0]!r} "
                    f"({len(absent)} missing). Pass the columns {_listed(names)}."
                )
            order = [self.names.index(name) for name in names]
            return Targets(self.values[:, order], tuple(names))
        found = self.values.shape[1]
        if found != n_targets:
            raise InvalidDataError(
                f"{what} must have as many targets as fit ({n_targets}), got {found}. "
                "Pass one column per target, in the same order."
            )
        return self


def read_targets(y: Any, n_rows: int, *, must_vary: bool = True) -> Targets:
    """Read one target or several, and refuse what cannot be learned.

    Parameters
    ----------
    y : array-like
        One target as for `check_target`; several as a DataFrame (pandas, polars, pyarrow), a dict
        of columns, an array of shape (n, t) or a list of lists.
    n_rows : int
        Number of rows of the table they belong to.
    must_vary : bool, default=True
        Whether a constant target is refused.

    Returns
    -------
    Targets
        A row of which some entries are missing is kept; they are NaN.

    Raises
    ------
    InvalidDataError
        As `check_target`, with the name of the target.

    Examples
    --------
    >>> read_targets({"width": [1, 2], "height": [3.5, None]}, 2)
    Targets(values=array([[1. , 3.5],
           [2. , nan]]), names=('width', 'height'))
    >>> read_targets([1, 2], 2)
    Targets(values=array([[1.],
           [2.]]), names=None)
    """
    table = _as_table(y)
    if table is None:
        return Targets(check_target(y, n_rows, must_vary=must_vary)[0][:, None])
    names = tuple(table.names) if table.has_names else None
    if table.n_columns == 1:
        only = table.column(table.names[0]) if isinstance(y, Mapping) else y
        return Targets(check_target(only, n_rows, must_vary=must_vary)[0][:, None], names)
    columns = []
    for position, name in enumerate(table.names):
        label = f"The target {name!r}" if names is not None else f"The target {position}"
        column: Any = table.column(name)
        if table.is_number[position]:
            column = table.numbers([position])[:, 0]
            if not must_vary and np.isnan(column).all():
                columns.append(column)  # rows to validate on need not have every target
                continue
        columns.append(check_target(column, n_rows, must_vary=must_vary, label=label)[0])
    return Targets(np.stack(columns, axis=1), names)


def _as_table(y: Any) -> Table | None:
    """Targets that have columns as a table; None for a single target, and for what is neither."""
    import pyarrow as pa

    if isinstance(y, (list, tuple)) and any(isinstance(row, (list, tuple)) for row in y):
        lengths = {len(row) if isinstance(row, (list, tuple)) else 0 for row in y}
        if len(lengths) > 1 or 0 in lengths:
            return None
        y = np.array(y, dtype=object)
    elif isinstance(y, (list, tuple)) and y and all(isinstance(row, np.ndarray) for row in y):
        y = np.stack(y)
    is_frame = hasattr(y, "columns") or isinstance(y, (Mapping, pa.Table, pa.RecordBatch))
    is_matrix = isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 0
    return Table.from_native(y) if is_frame or is_matrix else None


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(map(repr, names[:5])) + more
