"""The columns of a table that reach a model: their names, features and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tabnsm.columns.values import column_values, joined_values

if TYPE_CHECKING:
    from tabnsm.columns import TableEncoder
    from tabnsm.tables import Table


def input_columns(encoder: TableEncoder) -> tuple[tuple[str, ...], np.ndarray]:
    """Columns that reach the model, and the place among them of each feature's column.

    Parameters
    ----------
    encoder : TableEncoder

    Returns
    -------
    names : tuple of str
        In the order of the table; joined text columns together at the place of the first.
    column_of_feature : ndarray of int64, shape (n_features,)
    """
    names = {spec.position: spec.name for spec in encoder.specs}
    texts = [spec for spec in encoder.specs if spec.kind == "text"]
    position = np.array(encoder.feature_columns, dtype=np.int64)
    if -1 in position:
        position[position == -1] = texts[0].position
        names[texts[0].position] = " + ".join(spec.name for spec in texts)
    used, column_of_feature = np.unique(position, return_inverse=True)
    return tuple(names[int(place)] for place in used), column_of_feature.astype(np.int64)


def displayed_columns(encoder: TableEncoder, table: Table) -> tuple[np.ndarray, ...]:
    """Values of the columns of `input_columns` in the rows of a table.

    Parameters
    ----------
    encoder : TableEncoder
    table : Table
        With the columns of the fit.

    Returns
    -------
    tuple of ndarray
        Numbers as float64, all others as strings.
    """
    matched = encoder.match(table)
    joined = [spec for spec in encoder.specs if spec.kind == "text"]
    is_joined = -1 in encoder.feature_columns
    used = {k for k in encoder.feature_columns if k != -1}
    if is_joined:
        used.add(joined[0].position)
    with table.keep_columns():
        return tuple(
            joined_values(matched, joined)
            if is_joined and spec.position == joined[0].position
            else column_values(matched, spec)
            for spec in encoder.specs
            if spec.position in used
        )
