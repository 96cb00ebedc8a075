"""Growing of trees in stages, until validation or the time says stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.blend.extraction import averaged_trees, boosted_trees
from tabnsm.blend.forest import Forest
from tabnsm.training.budget import now

Values = NDArray[np.float64]
Columns = NDArray[np.float32]
_STAGE, _N_COMPARED = 4, 16  # random trees that are grown at once, and before shapes are compared


@dataclass(frozen=True, eq=False)
class TreeRows:
    """Columns, targets and weights of the rows that trees learn from, and of those that stop them.

    Parameters
    ----------
    x, x_val : ndarray of float32, shape (n, D)
        The first `n_categories` columns are codes.
    y, y_val : ndarray of float64, shape (n,)
        Near 0 and with a deviation near 1.
    weight, weight_val : ndarray of float64, shape (n,), or None
    n_categories : int
    seed : int
    """

    x: Columns
    y: Values
    weight: Values | None
    x_val: Columns
    y_val: Values
    weight_val: Values | None
    n_categories: int
    seed: int


def grow_boosted(
    rows: TreeRows,
    seconds_left: Callable[[], float],
    *,
    learning_rate: float,
    max_trees: int = 2000,
    patience: int = 60,
    **options: Any,
) -> Forest:
    """Boosted trees, as many of them as validate best.

    Parameters
    ----------
    rows : TreeRows
    seconds_left : callable
        No stage is begun that would end after them; the first one always is.
    learning_rate : float
    max_trees : int
    patience : int
        Trees without a better validation error before growing stops.
    **options
        Of HistGradientBoostingRegressor.

    Returns
    -------
    Forest
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        learning_rate=learning_rate,
        early_stopping=False,
        warm_start=True,
        categorical_features=list(range(rows.n_categories)) or None,
        random_state=rows.seed,
        **options,
    )
    forest: Forest | None = None
    prediction = np.zeros(len(rows.y_val))
    errors: list[float] = []
    n_trees = 25
    while True:
        started = now()
        model.set_params(max_iter=n_trees).fit(rows.x, rows.y, rows.weight)
        grown = boosted_trees(model, len(errors))
        forest = grown if forest is None else Forest.join([forest, grown])
        if not errors:
            prediction += forest.start
        for values in grown.leaf_values(rows.x_val):
            prediction += values
            errors.append(_squared_error(rows, prediction))
        best = int(np.argmin(errors)) + 1
        spent = now() - started
        if n_trees - best >= patience or n_trees >= max_trees or seconds_left() < 2 * spent:
            return forest.first(best)
        n_trees = min(n_trees * 2 if n_trees < 400 else n_trees + 200, max_trees)


def grow_extra(
    rows: TreeRows,
    seconds_left: Callable[[], float],
    *,
    n_trees: int = 64,
    shapes: Sequence[Mapping[str, int]] = ({},),
    **options: Any,
) -> Forest:
    """Extremely randomised trees of the shape that validates best, averaged.

    Parameters
    ----------
    rows : TreeRows
        Codes of categories are left out, for they have no order; their means have one.
    seconds_left : callable
        As in `grow_boosted`. Where they are few, only the first shapes are compared.
    n_trees : int
    shapes : sequence of dict
        Options of ExtraTreesRegressor to choose from.
    **options
        Those of all shapes.

    Returns
    -------
    Forest
    """
    from sklearn.ensemble import ExtraTreesRegressor

    x, x_val = (values[:, rows.n_categories :] for values in (rows.x, rows.x_val))

    def grow(model: Any, n_wanted: int) -> bool:
        """Whether there is time for more."""
        grown = len(getattr(model, "estimators_", ()))
        while grown < n_wanted:
            started = now()
            grown = min(grown + _STAGE, n_wanted)
            model.set_params(n_estimators=grown).fit(x, rows.y, rows.weight)
            if seconds_left() < 1.5 * (now() - started):
                return False
        return True

    compared: list[tuple[float, int, Any]] = []
    for shape in shapes:
        model = ExtraTreesRegressor(warm_start=True, random_state=rows.seed, **options, **shape)
        has_time = grow(model, min(_N_COMPARED, n_trees))
        # One shape needs no validation rows.
        error = _squared_error(rows, model.predict(x_val)) if len(shapes) > 1 else 0.0
        compared.append((error, len(compared), model))
        if not has_time:
            break
    *_, model = min(compared)
    if has_time:
        grow(model, n_trees)
    forest = averaged_trees(model)
    forest.feature[:] += rows.n_categories
    return forest.scaled(1.0 / len(model.estimators_))


def _squared_error(rows: TreeRows, prediction: Values) -> float:
    return float(np.average((prediction - rows.y_val) ** 2, weights=rows.weight_val))
