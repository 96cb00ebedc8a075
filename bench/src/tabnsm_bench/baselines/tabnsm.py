"""TabNSM itself, on frames, with any of its parameters as an option."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import TabNSMWarning
from tabnsm.estimator import TabNSMRegressor
from tabnsm.options import resolve_options
from tabnsm_bench.baselines.common import Curve, describe, take_options, torch_threads
from tabnsm_bench.protocol import Prepared

# Decided by the run and not by the method.
_OF_THE_RUN = ("preset", "random_state", "time_limit", "verbose", "checkpoint_dir")


class TabNSMMethod:
    """The estimator as a method.

    Parameters
    ----------
    preset : str
        "default", "best", "paper" or "fast".
    **given
        Parameters of `TabNSMRegressor`.

    Examples
    --------
    >>> TabNSMMethod("paper", attention="full").model.get_params()["attention"]
    'full'
    """

    takes_frames = True

    def __init__(self, preset: str, **given: Any) -> None:
        known = TabNSMRegressor().get_params()
        allowed = {name: value for name, value in known.items() if name not in _OF_THE_RUN}
        self.given = given
        take_options(f"tabnsm-{preset}", allowed, given)
        self.model = TabNSMRegressor(preset=preset, **given)  # type: ignore[arg-type]
        self.options = resolve_options(self.model.get_params()).to_dict()

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Fit; see `Method.fit`. The options in the facts are the resolved ones."""
        self.model.set_params(random_state=seed, time_limit=time_limit)
        self.n_threads = n_threads
        with torch_threads(n_threads), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(
                data.train_frame,
                data.train.y,
                X_val=data.validation_frame,
                y_val=data.validation.y,
            )
        for warning in caught:
            if not issubclass(warning.category, TabNSMWarning):
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
        history = self.model.history_
        curve = Curve(
            [record.validation_rmse for record in history],
            [record.seconds for record in history],
        )
        messages = [str(w.message) for w in caught if issubclass(w.category, TabNSMWarning)]
        return describe(
            "tabnsm",
            self.model.options_.to_dict(),
            given=self.given,
            n_features=self.model.encoder_.n_features,
            n_parameters=sum(p.numel() for p in self.model.model_.parameters()),
            n_networks=len(self.model.histories_),
            weights=None if self.model.blend_ is None else self.model.blend_.weights,
            has_linear_fit=self.model.target_.has_linear_fit,
            epochs=len(history),
            best_epoch=history.best_epoch,
            stop_reason=history.stop_reason,
            history=curve.to_dict(),
            warnings=list(dict.fromkeys(messages)),
        )

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        with torch_threads(self.n_threads):
            return self.model.predict(frame)
