"""A method whose options are searched on the validation rows: the same budget for all."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabnsm.errors import InvalidOptionError
from tabnsm.tuning import Report, TuningResult, search, tune
from tabnsm.tuning.space import describe as describe_space
from tabnsm_bench.baselines.catalog import TABNSM_METHODS, make
from tabnsm_bench.baselines.common import rmse, torch_threads
from tabnsm_bench.method_spaces import method_space
from tabnsm_bench.protocol import Method, Prepared

TRIALS = 20  # the paper's budget
# After the search the best options and the method's own are fitted, and the better one is kept.
_LAST_FITS = 2


class TunedMethod:
    """A method that searches its options before it learns, as "catboost+tuned=20" does.

    The trials are kept in a file below the cache folder, so that a run that was killed continues,
    and so that processes which search the same share the trials. The method's own options always
    are a candidate; the final choice is made by the RMSE on the validation rows.

    Parameters
    ----------
    key : str
        The method.
    fixed : mapping
        Options that are not searched.
    n_trials : int
        Trials, in all processes together.
    storage : str, Path or None
        File that keeps the trials, in place of one below the cache folder.
    verbose : int
        0 is silent, 1 shows a bar, 2 a line per trial.

    Examples
    --------
    >>> TunedMethod("ridge", {}, 5).takes_frames
    False
    """

    def __init__(
        self,
        key: str,
        fixed: Mapping[str, Any],
        n_trials: int = TRIALS,
        storage: str | Path | None = None,
        verbose: int = 0,
    ) -> None:
        if not isinstance(n_trials, int) or isinstance(n_trials, bool) or n_trials < 1:
            raise InvalidOptionError(f"tuned must be a number of trials >= 1, got {n_trials!r}.")
        self.key, self.fixed, self.n_trials = key, dict(fixed), n_trials
        self.storage, self.verbose = storage, verbose
        self.space = method_space(key, fixed)
        method: Any = make(key, fixed)
        self.takes_frames: bool = method.takes_frames
        own = {**getattr(method, "options", fixed), **getattr(method, "training", {})}
        self.options = own | {"tuned": n_trials, "space": describe_space(self.space)}

    def fit(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> dict[str, Any]:
        """Search and fit; see `Method.fit`. Each fit has an equal part of the time limit."""
        result = self.search(data, seed=seed, time_limit=time_limit, n_threads=n_threads)
        limit = self._share(time_limit)
        errors, facts = {}, {}
        methods: dict[str, Method] = {}
        options = {"own": self.fixed, "searched": self.method_options(result)}
        for name, chosen in options.items():
            methods[name] = make(self.key, chosen)
            facts[name] = methods[name].fit(data, seed=seed, time_limit=limit, n_threads=n_threads)
            errors[name] = _validation_rmse(methods[name], data)
        best = min(errors, key=lambda name: errors[name])
        self.method = methods[best]
        states = Counter(trial.state for trial in result.trials)
        tuning = {
            "n_trials": self.n_trials,
            "trials": dict(states),
            "trial_seconds": round(sum(trial.seconds or 0.0 for trial in result.trials), 2),
            "stopped": result.stopped,
            "searched_options": result.best_options,
            "validation_rmse": errors,
            "chosen": best,
        }
        return facts[best] | {"tuning": tuning}

    def predict(self, x: NDArray[np.float32], frame: Any) -> NDArray[np.float64]:
        """Predict; see `Method.predict`."""
        return self.method.predict(x, frame)

    def search(
        self, data: Prepared, *, seed: int, time_limit: float | None, n_threads: int
    ) -> TuningResult:
        """Search the options that validate best.

        Parameters
        ----------
        data, seed, time_limit, n_threads
            As in `Method.fit`.

        Returns
        -------
        TuningResult
        """
        share = self._share(time_limit)
        fingerprint = self._fingerprint(data, seed, time_limit)
        storage = Path(self.storage or _tuning_dir() / f"{self.key}-{fingerprint[:24]}.journal")
        storage.parent.mkdir(parents=True, exist_ok=True)
        budget: dict[str, Any] = {
            "n_trials": self.n_trials,
            "time_limit": None if share is None else share * self.n_trials,
            "storage": storage,
            "random_state": seed,
            "verbose": self.verbose,
        }
        if self.key in TABNSM_METHODS:
            limit = {} if share is None else {"time_limit": share}
            with torch_threads(n_threads):
                return tune(
                    data.train_frame,
                    data.train.y,
                    X_val=data.validation_frame,
                    y_val=data.validation.y,
                    preset=self.key.removeprefix("tabnsm-"),
                    options=self.fixed | limit,
                    **budget,
                )

        def objective(drawn: dict[str, Any], report: Report) -> float:
            left = [seconds for seconds in (share, report.seconds_left) if seconds is not None]
            method = make(self.key, self.fixed | drawn)
            limit = max(min(left), 1e-3) if left else None
            method.fit(data, seed=seed, time_limit=limit, n_threads=n_threads)
            return _validation_rmse(method, data)

        name = "validation RMSE"
        return search(self.space, objective, fingerprint=fingerprint, score_name=name, **budget)

    def method_options(self, result: TuningResult) -> dict[str, Any]:
        """All options of the method with the best that were found."""
        best = {name: value for name, value in result.best_options.items() if name != "preset"}
        return self.fixed | best

    def _share(self, time_limit: float | None) -> float | None:
        return None if time_limit is None else time_limit / (self.n_trials + _LAST_FITS)

    def _fingerprint(self, data: Prepared, seed: int, time_limit: float | None) -> str:
        """Hash of all that the score of a trial depends on."""
        identity = [self.key, self.fixed, describe_space(self.space), seed, self._share(time_limit)]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode())
        for part in (data.train, data.validation):
            digest.update(np.ascontiguousarray(part.x).tobytes())
            digest.update(np.ascontiguousarray(part.y).tobytes())
        if self.takes_frames:
            digest.update(data.train_frame.to_csv(index=False).encode())
        return digest.hexdigest()


def _validation_rmse(method: Method, data: Prepared) -> float:
    return rmse(data.validation.y, method.predict(data.validation.x, data.validation_frame))


def _tuning_dir() -> Path:
    from tabnsm.text.cache_file import cache_path

    return cache_path().parent.absolute() / "tuning"
