"""Single rows with their contributions, for the table of the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor
    from tabnsm.tables import Table

N_STEPS = 8
MAX_PARTS, MAX_TEXT = 10, 60


def describe_rows(
    model: FittedRegressor,
    table: Table,
    numbers: np.ndarray,
    truth: np.ndarray,
    prediction: np.ndarray,
    max_rows: int,
    place: int = 0,
) -> dict[str, Any]:
    """Rows of the largest errors, and others at random, each with its contributions.

    Parameters
    ----------
    model : FittedRegressor
    table : Table
    numbers : ndarray of int64, shape (n_rows,)
        Numbers of the rows among those that were given.
    truth, prediction : ndarray of shape (n_rows,)
    max_rows : int
    place : int, default 0
        Which of the model's targets is shown.

    Returns
    -------
    dict
        `columns`, `base`, and `rows`; a part of a row is the place of its column, the value as a
        string, and the contribution. Parts add up to what is `explained`: the prediction, or of
        a blend that of its networks.
    """
    shown = _choose(np.abs(truth - prediction), max_rows)
    explanation = model.explain(table.take(shown), n_steps=N_STEPS, target=place)
    rows = []
    for k, place in enumerate(shown):
        values = explanation.contributions[k]
        order = np.argsort(-np.abs(values), kind="stable")
        parts = [
            [int(c), _text(explanation.column_values[c][k]), float(values[c])]
            for c in order[:MAX_PARTS]
        ]
        rows.append(
            {
                "row": int(numbers[place]),
                "truth": float(truth[place]),
                "prediction": float(prediction[place]),
                "explained": float(explanation.predictions[k]),
                "parts": parts,
                "rest": float(values[order[MAX_PARTS:]].sum()),
                "n_rest": max(0, len(values) - MAX_PARTS),
            }
        )
    assert explanation.base_values is not None
    return {
        "columns": list(explanation.columns),
        "base": float(explanation.base_values[0]),
        "network_share": explanation.network_share,
        "n_largest": min(len(shown), max_rows // 4),
        "rows": rows,
    }


def _choose(error: np.ndarray, max_rows: int) -> np.ndarray:
    """All rows, or a quarter of the largest errors and others at random."""
    if len(error) <= max_rows:
        return np.arange(len(error))
    order = np.argsort(-error, kind="stable")
    largest, others = order[: max_rows // 4], order[max_rows // 4 :]
    drawn = np.random.default_rng(0).choice(others, max_rows - len(largest), replace=False)
    return np.sort(np.concatenate([largest, drawn]))


def _text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    if not isinstance(value, str):
        return f"{float(value):.6g}"
    line = " ".join(value.split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"
