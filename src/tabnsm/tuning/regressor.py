"""tune: search options of TabNSMRegressor on a table that is encoded once."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabnsm.errors import InvalidOptionError
from tabnsm.estimator import TabNSMRegressor
from tabnsm.options import Options, resolve_options
from tabnsm.prediction import resolve_device
from tabnsm.torch_state import usual_torch
from tabnsm.training.objective import BLEND_OPTIONS, PLAIN_LOSSES
from tabnsm.training.prepare import FitRows, Validation
from tabnsm.tuning.config_file import check_names, option_names
from tabnsm.tuning.progress import show_preparation
from tabnsm.tuning.report import Report
from tabnsm.tuning.result import TuningResult
from tabnsm.tuning.rows import TuningRows
from tabnsm.tuning.space import Parameter, contains, search_space
from tabnsm.tuning.study import check_search, search

# Options that say how to run and not what to learn; `tune` has them itself or does not need them.
_NOT_TUNED = ("preset", "random_state", "verbose", "checkpoint_dir", "n_jobs")
# Limits of a trial, and where it runs: the final fit has its own.
_OF_A_TRIAL = ("max_epochs", "time_limit", "device")
_NOT_SEARCHED = {
    "n_ensemble": "a trial trains one network",
    "eval_metric": "it is what trials are compared by",
}
_SPARSE = (
    "window_size",
    "compress_block_size",
    "selection_block_size",
    "n_selected_blocks",
)


@usual_torch()
def tune(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    X_val: Any = None,
    y_val: Any = None,
    validation_groups: Any = None,
    validation_time: Any = None,
    preset: str = "default",
    options: Mapping[str, Any] | None = None,
    space: Mapping[str, Parameter] | None = None,
    n_trials: int = 20,
    time_limit: float | None = None,
    storage: str | Path | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> TuningResult:
    """Search the options of `TabNSMRegressor` that validate best.

    Every trial trains one network on the same rows and is scored by the `eval_metric` of its best
    epoch on the same validation rows: exactly those of
    ``TabNSMRegressor(random_state=random_state).fit`` with the same arguments, whose first network
    reproduces the score if the same limits bound it. Do not pass test rows. The preset's own
    options are tried first, so that the result validates at least as well as they do.

    Parameters
    ----------
    X, y, sample_weight, X_val, y_val, validation_groups, validation_time
        As in `TabNSMRegressor.fit`.
    preset : {"default", "best", "paper", "fast"}, default "default"
        What the search starts from.
    options : mapping or None, default None
        Options of `TabNSMRegressor` that are fixed, such as ``column_kinds``. ``max_epochs`` and
        ``time_limit`` bound a trial and are not part of the result: pass them to the final
        estimator if they are to bound it, too.
    space : mapping of str to Integer, Real or Choice, or None, default None
        Options to search instead of ``search_space(preset)``; ``d_head`` times ``n_heads`` is
        ``d_token``.
    n_trials : int, default 20
        Of the whole study, earlier runs and other processes included.
    time_limit : float or None, default None
        Seconds of this call; the trial that is running then is cut short. The first trial makes
        at least a step.
    storage : str, Path or None, default None
        File or database that keeps the study, to go on after a kill and to share among processes
        and machines; see `search`.
    random_state : int, default 0
        Of the trials, and of the split and the start of each fit.
    verbose : int, default 0
        0 is silent, 1 shows a bar, 2 a line per trial.

    Returns
    -------
    TuningResult
        With ``best_options`` for ``TabNSMRegressor(**best_options)``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 3))
    >>> result = tune(X, X[:, 0] * X[:, 1], n_trials=2, options={"max_epochs": 2})
    >>> model = TabNSMRegressor(**result.best_options, max_epochs=2, random_state=0)
    >>> model.fit(X, X[:, 0] * X[:, 1]).history_.best.validation_rmse == result.best_score
    True
    """
    started = time.monotonic()
    fixed = dict(options or {})
    check_names(fixed, _tunable(), "options")
    searched = _searched(search_space(preset) if space is None else space, fixed, space is not None)
    check_search(searched, n_trials, time_limit, storage, random_state)
    base = TabNSMRegressor(preset=preset, random_state=random_state, **fixed)  # type: ignore[arg-type]
    resolved = resolve_options(base.get_params(deep=False))
    validation = Validation(
        X_val, y_val, validation_groups, validation_time, base.validation_fraction
    )
    device = resolve_device(base.device)
    show_preparation(verbose, n_trials)
    fit_rows = FitRows.collect(X, y, sample_weight, validation, random_state)
    rows = TuningRows(fit_rows, device, verbose)
    if space is None and resolved.objective.for_target(fit_rows.target).loss in PLAIN_LOSSES:
        searched = {k: v for k, v in searched.items() if k not in BLEND_OPTIONS}

    def objective(drawn: dict[str, Any], report: Report) -> float:
        chosen = base.get_params(deep=False) | estimator_options(drawn, base.n_heads)
        return rows.score(resolve_options(chosen), report)

    defaults = _defaults(resolved, searched)
    fingerprint = rows.fingerprint(resolved)
    # Encoding, which has just been done, counts.
    left = None if time_limit is None else max(time_limit + started - time.monotonic(), 1e-3)
    result = search(
        searched,
        objective,
        n_trials,
        time_limit=left,
        storage=storage,
        first=defaults if contains(searched, defaults) else None,
        fingerprint=fingerprint,
        random_state=random_state,
        score_name=f"validation {resolved.training.eval_metric.upper()}",
        verbose=verbose,
    )
    kept = {k: v for k, v in fixed.items() if k not in _OF_A_TRIAL and _is_plain(v)}
    best = {"preset": preset, **kept, **estimator_options(result.best_options, base.n_heads)}
    return dataclasses.replace(result, best_options=best)


def estimator_options(drawn: Mapping[str, Any], n_heads: int) -> dict[str, Any]:
    """Options of the regressor from those of the space, where a token is made of heads.

    Examples
    --------
    >>> estimator_options({"d_head": 8, "n_heads": 2, "window_size": 4}, n_heads=4)
    {'n_heads': 2, 'window_size': 4, 'd_token': 16}
    """
    options = dict(drawn)
    if "d_head" in options:
        options["d_token"] = options.pop("d_head") * options.get("n_heads", n_heads)
    return options


def _tunable() -> list[str]:
    return [name for name in option_names() if name not in _NOT_TUNED]


def _searched(
    space: Mapping[str, Parameter], fixed: Mapping[str, Any], is_users: bool
) -> dict[str, Parameter]:
    """The space without what is fixed, or without meaning for what is."""
    check_names(space, [*_tunable(), "d_head"], "space")
    for name, why in _NOT_SEARCHED.items():
        if name in space:
            raise InvalidOptionError(
                f"space must not hold {name}, because {why}, got {space[name]!r}. "
                "Leave it out, or fix it in options."
            )
    both = [name for name in space if name in fixed]
    if is_users and both:
        raise InvalidOptionError(f"{both[0]} must be in options or in space, but it is in both.")
    without = set(fixed)
    if "d_token" in fixed:
        without |= {"d_head", "n_heads"}
    if fixed.get("attention", "sparse") != "sparse":
        without |= set(_SPARSE)
    return dict(space) if is_users else {k: v for k, v in space.items() if k not in without}


def _defaults(resolved: Options, searched: Mapping[str, Parameter]) -> dict[str, Any]:
    """The preset's own values of what is searched."""
    flat = {name: value for part in resolved.to_dict().values() for name, value in part.items()}
    flat["d_head"] = resolved.architecture.d_head
    return {name: flat[name] for name in searched if name in flat}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True
