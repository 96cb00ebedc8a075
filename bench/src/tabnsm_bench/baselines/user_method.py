"""A baseline with an implementation that the user provides."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines.common import Columns, TargetScale
from tabnsm_bench.baselines.info import BaselineInfo
from tabnsm_bench.protocol import Method, Prepared


class UserRegressor:
    """A regressor in the manner of scikit-learn, on one-hot arrays and standardised targets.

    Parameters
    ----------
    model : object
        With ``fit(X, y)`` and ``predict(X)``.
    factory : str
        Where it came from.
    options : mapping
        What it was made with.
    """

    takes_frames = False

    def __init__(self, model: Any, factory: str, options: Mapping[str, Any]) -> None:
        self.model = model
        self.factory = factory
        self.options = dict(options)

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. The seed reaches models with a `random_state`."""
        self.columns = Columns(data.category_sizes)
        self.scale = TargetScale.of(data.train.y)
        if "random_state" in getattr(self.model, "get_params", dict)():
            self.model.set_params(random_state=seed)
        self.model.fit(self.columns.one_hot(data.train.x), self.scale.apply(data.train.y))
        return {"factory": self.factory, "options": self.options}

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        predicted = np.asarray(self.model.predict(self.columns.one_hot(x)))
        return self.scale.undo(predicted.reshape(len(x)))


def user_method(info: BaselineInfo, options: Mapping[str, Any]) -> Method:
    """The implementation that the baseline's environment variable names.

    Parameters
    ----------
    info : BaselineInfo
        The baseline.
    options : mapping
        Arguments of the factory.

    Returns
    -------
    Method
        What the factory gave, if that is one; else the regressor that it gave, wrapped.

    Raises
    ------
    InvalidOptionError
        If the factory cannot be imported.
    """
    module, _, name = info.user_factory.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidOptionError(
            f"{info.user_variable} must be module:factory that can be imported, "
            f"got {info.user_factory!r} ({error})."
        ) from error
    options = {key: value for key, value in options.items() if key != "max_epochs"}
    made = factory(**options)
    if hasattr(made, "takes_frames"):
        method: Method = made
        return method
    return UserRegressor(made, info.user_factory, options)
