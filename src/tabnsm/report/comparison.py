"""TabNSM beside ridge regression, boosting and the mean, on the same rows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tabnsm.metrics import regression_metrics

if TYPE_CHECKING:
    from tabnsm.columns import EncodedTable
    from tabnsm.fitted import FittedRegressor

N_FOLDS = 5
MIN_ROWS = 20
# HistGradientBoosting takes at most 255 categories per feature. Ridge regression gets a column for
# each of the most frequent categories, of one feature and of all together.
MAX_CATEGORIES, MAX_ONE_HOT, MAX_ONE_HOT_IN_ALL = 254, 50, 400
PENALTIES = np.logspace(-2, 5, 8)
Rows = tuple["EncodedTable", np.ndarray]


def compare(
    model: FittedRegressor,
    encoded: EncodedTable,
    truth: np.ndarray,
    prediction: np.ndarray,
    train: Rows | None = None,
) -> dict[str, Any]:
    """Metrics of every method, and a sentence on what each was trained on.

    Parameters
    ----------
    model : FittedRegressor
    encoded : EncodedTable
        Rows to compare on.
    truth, prediction : ndarray of shape (n_rows,)
        Of these rows; the prediction is TabNSM's.
    train : tuple of EncodedTable and ndarray, or None
        Rows to train the others on; None trains them by cross-validation on `encoded`.

    Returns
    -------
    dict
        `methods`, the best first, and `note`.
    """
    own = regression_metrics(truth, prediction)
    methods: list[dict[str, Any]] = [{"name": "TabNSM", "metrics": own}]
    if train is None and len(truth) < MIN_ROWS:
        note = f"With fewer than {MIN_ROWS} rows, no other method is trained on them."
        return {"methods": methods, "note": note}
    sizes = model.encoder_.category_sizes
    for name, fit_predict in (("boosting", _boosting), ("ridge", _ridge), ("mean", _mean)):
        if train is None:
            found = _cross_validated(fit_predict, encoded, truth, sizes)
        else:
            found = fit_predict(_matrix(train[0]), train[1], _matrix(encoded), sizes)
        metrics = regression_metrics(truth, found)
        methods.append({"name": NAMES[name], "metrics": metrics})
    methods.sort(key=lambda method: method["metrics"]["rmse"])
    return {"methods": methods, "note": _note(len(truth), train)}


NAMES = {"boosting": "HistGradientBoosting", "ridge": "ridge regression", "mean": "mean"}


def _note(n_rows: int, train: Rows | None) -> str:
    same = (
        "All get the features of TabNSM's encoder: numbers, parts of dates, categories, "
        "components of texts. Boosting has scikit-learn's default options; ridge regression "
        "chooses its penalty by cross-validation."
    )
    if train is not None:
        return (
            f"TabNSM was trained when it was fitted. The other methods were trained on "
            f"{len(train[1]):,} rows that were given as training rows, and predict the rows of "
            f"this report. {same}"
        )
    return (
        f"TabNSM was trained before, on rows of its own; if these rows were among them, its "
        f"figures are too good. The other methods were trained on the {n_rows:,} rows of this "
        f"report by {N_FOLDS}-fold cross-validation, so that each row is predicted by a model "
        f"that has not seen it. They have other training rows than TabNSM, and fewer if this "
        f"table is smaller than that of its fit: give the training rows for a comparison on "
        f"equal terms. {same}"
    )


def _cross_validated(
    fit_predict: Any, encoded: EncodedTable, truth: np.ndarray, sizes: tuple[int, ...]
) -> np.ndarray:
    from sklearn.model_selection import KFold

    matrix = _matrix(encoded)
    found = np.empty(len(truth))
    for train, test in KFold(N_FOLDS, shuffle=True, random_state=0).split(matrix):
        found[test] = fit_predict(matrix[train], truth[train], matrix[test], sizes)
    return found


def _matrix(encoded: EncodedTable) -> np.ndarray:
    return np.asarray(encoded.gather(torch.arange(encoded.n_rows)).numpy())


def _boosting(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, sizes: tuple[int, ...]
) -> np.ndarray:
    from sklearn.ensemble import HistGradientBoostingRegressor

    is_category = np.array([0 < size <= MAX_CATEGORIES for size in sizes])
    method = HistGradientBoostingRegressor(categorical_features=is_category, random_state=0)
    return np.asarray(method.fit(X, y).predict(X_new))


def _ridge(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    from sklearn.linear_model import RidgeCV

    chosen = _common_codes(X, sizes)
    wide, wide_new = (_one_hot(rows, chosen, sizes) for rows in (X, X_new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a penalty at the end of the range is no news here
        method = RidgeCV(alphas=PENALTIES).fit(wide, y)
    return np.asarray(method.predict(wide_new))


def _common_codes(train: np.ndarray, sizes: tuple[int, ...]) -> list[tuple[int, float]]:
    """The most frequent codes as pairs of feature and code."""
    found = []
    for feature in np.flatnonzero(sizes):
        codes, counts = np.unique(train[:, feature], return_counts=True)
        common = np.argsort(-counts, kind="stable")[:MAX_ONE_HOT]
        found += [(int(counts[k]), int(feature), float(codes[k])) for k in common]
    found.sort(key=lambda entry: -entry[0])
    return [(feature, code) for _, feature, code in found[:MAX_ONE_HOT_IN_ALL]]


def _one_hot(
    rows: np.ndarray, chosen: list[tuple[int, float]], sizes: tuple[int, ...]
) -> np.ndarray:
    """Numbers as they are, and a 0/1 column for each of the chosen codes."""
    numbers = rows[:, np.array(sizes) == 0]
    features, codes = [feature for feature, _ in chosen], [code for _, code in chosen]
    is_code = rows[:, features] == np.array(codes, dtype=rows.dtype)
    return np.concatenate([numbers, is_code.astype(rows.dtype)], axis=1)


def _mean(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    return np.full(len(X_new), y.mean())
