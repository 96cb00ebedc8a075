"""The data as understood, and how these rows differ from those of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tabnsm.columns.values import column_values

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable
    from tabnsm.fitted import FittedRegressor
    from tabnsm.tables import Table

# From here on a difference is marked on the page.
LARGE_SHIFT, LARGE_UNSEEN, LARGE_MISSING = 0.5, 0.05, 0.1


def describe_data(
    model: FittedRegressor, table: Table, encoded: EncodedTable, importances: np.ndarray
) -> list[dict[str, Any]]:
    """One entry per column of the fit.

    Numbers are encoded in standard deviations of the training rows, and the codes of categories
    are 0 for values that these did not have: the encoded rows tell how far they are from those of
    training, without the training rows.

    Parameters
    ----------
    model : FittedRegressor
    table : Table
        Rows of the report.
    encoded : EncodedTable
        The same, encoded.
    importances : ndarray of shape (n_columns,)

    Returns
    -------
    list of dict
    """
    encoder = model.encoder_
    matched = encoder.match(table)
    columns = np.array(encoder.feature_columns)
    entries = []
    for spec, row in zip(encoder.specs, encoder.describe(), strict=True):
        entry: dict[str, Any] = {
            "name": row.name,
            "kind": row.kind,
            "features": row.n_features,
            "missing": row.missing,
            "distinct": row.distinct,
            "note": row.note,
            "importance": float(importances[spec.position]),
            "missing_now": None,
            "drift": "",
            "is_large": False,
        }
        if spec.kind != "drop":
            values = column_values(matched, spec)
            now = float(np.mean([value is None or value != value for value in values.tolist()]))
            entry["missing_now"] = now
            features = np.flatnonzero(columns == spec.position)
            _add_drift(entry, encoded, features, encoder.category_sizes)
            entry["is_large"] |= abs(now - row.missing) > LARGE_MISSING
        entries.append(entry)
    return entries


def _add_drift(
    entry: dict[str, Any], encoded: EncodedTable, features: np.ndarray, sizes: tuple[int, ...]
) -> None:
    """What is known of the difference: a shift of the mean, or the share of unseen values."""
    if not len(features) or not encoded.n_rows:
        return
    if entry["kind"] == "text":
        return
    # A category may have further features beside its code.
    first = int(next((k for k in features if sizes[k]), features[0]))
    values = encoded.gather(torch.arange(encoded.n_rows))[:, first].numpy()
    if sizes[first]:
        unseen = float((values == 0).mean())
        entry["drift"] = f"{unseen:.1%} not seen in training" if unseen else ""
        entry["is_large"] = unseen > LARGE_UNSEEN
    elif entry["kind"] in ("numeric", "date"):
        shift = float(values.mean())
        entry["drift"] = f"mean {shift:+.2f} sd"
        entry["is_large"] = abs(shift) > LARGE_SHIFT
