"""Curves of training, options and versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from tabnsm.card import changed_options

if TYPE_CHECKING:
    from tabnsm.fitted import FittedRegressor

PACKAGES = ("tabnsm", "torch", "numpy", "scikit-learn", "pyarrow")


def describe_training(model: FittedRegressor) -> dict[str, Any]:
    """Epochs of every network.

    Parameters
    ----------
    model : FittedRegressor

    Returns
    -------
    dict
    """
    return {
        "metric": model.history_.eval_metric.upper(),
        "best_score": model.best_score_,
        "seconds": sum(history.seconds for history in model.histories_),
        "networks": [
            {
                "scores": [history.metric_of(record) for record in history],
                "losses": [record.train_loss for record in history],
                "best_epoch": history.best_epoch,
                "seconds": history.seconds,
                "stop_reason": history.stop_reason,
            }
            for history in model.histories_
        ],
    }


def describe_options(model: FittedRegressor) -> dict[str, Any]:
    """Options that differ from the default, all options that were used, and versions.

    Parameters
    ----------
    model : FittedRegressor

    Returns
    -------
    dict
    """
    used = [
        [part, name, str(value)]
        for part, options in model.options_.to_dict().items()
        for name, value in options.items()
    ]
    return {
        "changed": [list(pair) for pair in changed_options(model)],
        "used": used,
        "versions": [
            *([name, _version(name)] for name in PACKAGES),
            ["Python", platform.python_version()],
        ],
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
