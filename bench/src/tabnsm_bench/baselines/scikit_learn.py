"""The classical methods, from scikit-learn; categories, if any, are one-hot."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm_bench.baselines.common import (
    Columns,
    TargetScale,
    describe,
    draw_rows,
    rmse,
    take_options,
)
from tabnsm_bench.protocol import Prepared

# Time and memory of a kernel machine grow with the square of the rows.
SVR_ROWS = 10_000
LIBLINEAR_ITERATIONS = 20_000
RIDGE_ALPHAS = tuple(float(f"{alpha:.4g}") for alpha in np.logspace(-3, 4, 15))
LASSO_ALPHAS = tuple(float(f"{alpha:.4g}") for alpha in np.logspace(-4, 0, 9))


class Classical:
    """A regressor of scikit-learn on standardised targets.

    Parameters
    ----------
    build : callable
        From one set of options, the seed and the number of cores to a regressor.
    options : dict
        Options of the method.
    grid : tuple of (str, sequence) or None
        Option that the validation rows choose where it is None, and the values it can have.
    max_rows : int or None
        Maximum number of training rows; more are sampled at random, and the notes report it.
    """

    takes_frames = False

    def __init__(
        self,
        build: Callable[[dict[str, Any], int, int], Any],
        options: dict[str, Any],
        grid: tuple[str, Sequence[float]] | None = None,
        max_rows: int | None = None,
    ) -> None:
        self.build = build
        self.options = options
        self.grid = grid
        self.max_rows = max_rows

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. There is no way to stop halfway, so no time limit is kept."""
        from scipy.linalg import LinAlgWarning
        from sklearn.exceptions import ConvergenceWarning

        messages = {
            ConvergenceWarning: "did not converge",
            LinAlgWarning: "met an ill-conditioned matrix",
        }
        notes = []
        self.columns = Columns(data.category_sizes)
        self.scale = TargetScale.of(data.train.y)
        rows = draw_rows(len(data.train.y), self.max_rows or len(data.train.y), seed)
        if len(rows) < len(data.train.y):
            notes.append(f"{len(rows):,} of {len(data.train.y):,} training rows, drawn at random")
        self.hot = self.columns.one_hot_for(len(rows))
        x = self.hot(data.train.x[rows])
        y = self.scale.apply(data.train.y[rows])
        best = np.inf
        for options in self._candidates():
            model = self.build(options, seed, n_threads)
            with warnings.catch_warnings(record=True) as caught:
                for category in messages:
                    warnings.simplefilter("always", category)
                model.fit(x, y)
            error = rmse(data.validation.y, self._predict(model, data.validation.x))
            if not error >= best:
                best, self.model, chosen = error, model, options
                found = [
                    f"{type(model).__name__} {message}"
                    for category, message in messages.items()
                    if any(issubclass(warning.category, category) for warning in caught)
                ]
        notes += found
        return describe("scikit-learn", chosen, notes=notes, validation_rmse=best)

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return self._predict(self.model, x)

    def _candidates(self) -> list[dict[str, Any]]:
        if self.grid is None or self.options[self.grid[0]] is not None:
            return [self.options]
        name, values = self.grid
        return [{**self.options, name: value} for value in values]

    def _predict(self, model: Any, x: NDArray[np.float32]) -> NDArray[np.float64]:
        return self.scale.undo(model.predict(self.hot(x)))


def linear_regression(**given: Any) -> Classical:
    """Least squares."""
    from sklearn.linear_model import LinearRegression

    options = take_options("LinearRegression", {}, given)
    return Classical(lambda options, seed, n_threads: LinearRegression(), options)


def knn(**given: Any) -> Classical:
    """Mean of the five nearest rows."""
    from sklearn.neighbors import KNeighborsRegressor

    options = take_options("KNN-5", {"n_neighbors": 5, "weights": "uniform"}, given)
    return Classical(
        lambda options, seed, n_threads: KNeighborsRegressor(**options, n_jobs=n_threads), options
    )


def lasso(**given: Any) -> Classical:
    """Least squares with an L1 penalty, whose strength the validation rows choose."""
    from sklearn.linear_model import Lasso

    options = take_options("Lasso", {"alpha": None, "max_iter": 1000}, given)
    return Classical(
        lambda options, seed, n_threads: Lasso(**options, precompute=True),
        options,
        ("alpha", LASSO_ALPHAS),
    )


def ridge(**given: Any) -> Classical:
    """Least squares with an L2 penalty, whose strength the validation rows choose."""
    from sklearn.linear_model import Ridge

    options = take_options("Ridge", {"alpha": None}, given)
    return Classical(
        lambda options, seed, n_threads: Ridge(**options), options, ("alpha", RIDGE_ALPHAS)
    )


def svr_linear(**given: Any) -> Classical:
    """Linear support vector regression, by liblinear."""
    from sklearn.svm import LinearSVR

    options = take_options("SVR-Linear", {"C": 1.0, "epsilon": 0.1}, given)
    return Classical(
        lambda options, seed, n_threads: LinearSVR(
            **options, random_state=seed, max_iter=LIBLINEAR_ITERATIONS
        ),
        options,
    )


def svr_rbf(**given: Any) -> Classical:
    """Support vector regression with a Gaussian kernel, on at most 10,000 rows."""
    from sklearn.svm import SVR

    defaults = {"C": 1.0, "epsilon": 0.1, "gamma": "scale", "max_rows": SVR_ROWS}
    options = take_options("SVR-RBF", defaults, given)
    max_rows = options.pop("max_rows")
    return Classical(lambda options, seed, n_threads: SVR(**options), options, max_rows=max_rows)
